"""The change of a links file that gives its links a default pool. Pure: text in, text out.

The text is edited in place, so that comments and order stay. The parsed result is compared with the intended settings, so an
edit that changes anything else is rejected.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from strait.config.links import LinksFile, parse
from strait.config.pools import why_separate
from strait.config.validation import parsed
from strait.errors import ConfigError


class Adoption(NamedTuple):
    """Attributes:
    text: the links file with the pool.
    file: its content.
    separate: link that keeps its separate applications -> the reason.
    """

    text: str
    file: LinksFile
    separate: Mapping[str, str]


def adopted(text: str, pool: str, cores: int, where: str) -> Adoption:
    """Return the links file with this pool as the default of its links. The same text if it is that already.

    Args:
        cores: of this machine: the most slots of a pool whose Spark runs on it.

    Raises:
        ConfigError: the file is invalid, has another default pool, or must be edited by hand.
    """
    raw = parsed(text, where)
    before = parse(raw, where=where)
    if others := [name for name, one in before.pools.items() if one.default and name != pool]:
        raise ConfigError(
            where, [f"pools.{others[0]}.default: this pool is the default already"], hint="adopt that one"
        )
    if pool in before.pools and before.pools[pool].default:
        return Adoption(text, before, _separate(raw, raw["pools"][pool]))
    settings = _settings(raw, before, pool, cores)
    changed = _edited(text, raw, pool, settings)
    wanted = raw | {"pools": {**raw.get("pools", {}), pool: settings}}
    if _meaning(changed) != wanted:
        raise ConfigError(
            where,
            [f"pools.{pool}: cannot be added without a change of the rest"],
            hint=f"add `default: true` to it by hand, with max_slots: {settings.get('max_slots', 2)}",
        )
    return Adoption(changed, parse(wanted, where=where), _separate(raw, settings))


def _settings(raw: dict[str, Any], file: LinksFile, pool: str, cores: int) -> dict[str, Any]:
    """Return the block of the pool: as it is, with `default`; a new one has as many slots as its links had at most."""
    if pool in file.pools:
        return {"default": True, **(raw["pools"][pool] or {})}
    links = raw["links"].values()
    blocks = [link.get("spark") for link in links if not why_separate(link, {"spark": link.get("spark")})]
    # A link without a block has Spark's defaults, and would be moved to another Spark by any block of the pool.
    spark = None if None in blocks or not blocks else max(blocks, key=blocks.count)
    settings = {"default": True} | ({} if spark is None else {"spark": spark})
    members = file.links.keys() - _separate(raw, settings).keys()
    slots = sum(group.most_slots for name in members for group in file.links[name].groups.values())
    on_cluster = any(file.links[name].spark.master != "local" for name in members)
    most = max(1, min(max(2, slots), 1024 if on_cluster else cores))
    return {"default": True, "max_slots": most} | ({} if spark is None else {"spark": spark})


def _separate(raw: Mapping[str, Any], pool: Mapping[str, Any]) -> dict[str, str]:
    found = {str(name): why_separate(link, pool) for name, link in raw["links"].items()}
    return {name: why for name, why in found.items() if why}


def _edited(text: str, raw: Mapping[str, Any], pool: str, settings: Mapping[str, Any]) -> str:
    if text.lstrip().startswith("{"):
        return json.dumps({**raw, "pools": {**raw.get("pools", {}), pool: settings}}, indent=2) + "\n"
    if "pools" not in raw:
        return f"{text.rstrip()}\n\n{yaml.safe_dump({'pools': {pool: dict(settings)}}, sort_keys=False)}"
    indent = _indent_below(text, r"pools:")
    if pool not in (raw["pools"] or {}):
        block = yaml.safe_dump({pool: dict(settings)}, sort_keys=False, default_flow_style=True, width=10_000)
        return re.sub(
            r"(?m)^(pools:[ \t]*(#.*)?)$", lambda found: f"{found[1]}\n{indent}{block.strip()[1:-1]}", text, count=1
        )
    at = rf"(?m)^({re.escape(indent)}{re.escape(pool)}:[ \t]*)"
    flow = re.sub(at + r"\{[ \t]*", r"\1{default: true, ", text, count=1)
    if flow != text:
        return flow
    deeper = _indent_below(text, rf"{re.escape(indent)}{re.escape(pool)}:")
    return re.sub(at + r"(#.*)?$", lambda found: f"{found[0]}\n{deeper}default: true", text, count=1)


def _indent_below(text: str, key: str) -> str:
    """Return the indentation of the first entry below a key; two spaces more than its own if there is none."""
    found = re.search(rf"(?m)^{key}[^\n]*\n(?:[ \t]*(?:#[^\n]*)?\n)*([ ]+)\S", text)
    return found[1] if found else "  "


def _meaning(text: str) -> Any:
    try:
        return parsed(text, "")
    except ConfigError:
        return None
