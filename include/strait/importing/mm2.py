"""MirrorMaker 2: `mm2.properties` with its flows, or the configuration of a MirrorSourceConnector. Pure."""

from collections.abc import Mapping
from itertools import permutations

from strait.errors import ConfigError
from strait.importing.clients import put_clients
from strait.importing.draft import Draft, Flow, Given, Weight, as_name, secures
from strait.importing.mm2_rows import MM2_ROWS
from strait.importing.naming import add_patterns, routing_rules
from strait.importing.table import translate

_WHERE = "import mm2"
_EXCLUDED = r".*\.replica"  # one of MirrorMaker 2's defaults; the others are internal topics, which are excluded anyway
_EXCLUDED_GROUPS = ("console-consumer-.*", "connect-.*", "__.*")
_DEFAULT = "MirrorMaker 2's default."
_SOURCE_CONNECTOR = "MirrorSourceConnector"
_OF_CLIENTS = ("consumer.", "producer.", "admin.", "source.", "target.")
_NO_EFFECT = "needless: without a cluster or a flow before it, MirrorMaker 2 ignores it in `mm2.properties`"


def translate_mm2(properties: Mapping[str, str], *, link: str | None, secrets_dir: str) -> Draft:
    """Return the links file, with a link for each flow. Raises ConfigError if there is no flow, or an end has no
    address."""
    draft = Draft(secrets_dir)
    # A connector's configuration may contain `clusters`, too, which has no effect.
    is_driver = "clusters" in properties and "source.cluster.alias" not in properties
    flows = _of_driver(properties, draft) if is_driver else _of_connector(properties)
    if link is not None and len(flows) > 1:
        raise ConfigError(_WHERE, [f"--link names one link, and there are {len(flows)} flows"])
    for (source, target), given in flows.items():
        ends = source or "source", target or "target"  # a connector's alias may be empty
        name = link or as_name("-to-".join(ends))
        _put_flow(Flow(draft, name, as_name(ends[0]), as_name(ends[1])), source, target, given)
    _expect_producers_on_both_sides(draft)
    return draft


def _expect_producers_on_both_sides(draft: Draft) -> None:
    """Let links in both directions under the same names accept records that producers wrote to their destination. Each
    would halt at the first of these otherwise."""
    same = {(link["source"], link["destination"]): name for name, link in draft.links.items() if "naming" not in link}
    for (source, destination), name in same.items():
        if (destination, source) in same:
            topics = draft.links[name].setdefault("topics", {})
            topics["rules"] = [{"match": ".*", "on_foreign": "expect"}, *topics.get("rules", [])]
            told = "Both directions have the same names: producers may write to both sides. Remove it if they do not."
            draft.note(told, "links", name, "topics", "rules")


def _put_flow(flow: Flow, source: str, target: str, given: list[Given]) -> None:
    said = {each.name for each in given}
    translate(flow, MM2_ROWS, given)
    for end, alias in (("source", source), ("destination", target)):
        if (end, "bootstrap.servers") not in flow.clients:
            raise ConfigError(_WHERE, [f"no `bootstrap.servers` of cluster {alias}"])
    if not said & {"topics", "topics.whitelist"}:
        flow.put([".*"], "topics", "regex", note="MirrorMaker 2's default: all topics.")
    if not said & {"topics.exclude", "topics.blacklist"}:
        excluded = Given("topics.exclude", "topics.exclude", _EXCLUDED)
        add_patterns(flow, excluded, [_EXCLUDED], "topics", "exclude")
        flow.note("MirrorMaker 2's default; internal topics stay out anyway.", "topics", "exclude")
    _put_names(flow, source, target)
    for path, value in _DEFAULTS.items():
        if flow.get(*path) is None:
            flow.put(value, *path, note=_DEFAULT)
    _put_groups(flow, said)
    if flow.get("replication_factor") == -1:
        del flow.draft.links[flow.name]["replication_factor"]  # the destination broker's, our default
    put_clients(flow)


def _put_groups(flow: Flow, said: set[str]) -> None:
    """Set the defaults that MirrorMaker 2 has for a flow that synchronizes consumer groups."""
    if flow.get("consumer_groups", "sync"):
        if not said & {"groups.exclude", "groups.blacklist"}:
            flow.put([*_EXCLUDED_GROUPS], "consumer_groups", "exclude", note=_DEFAULT)
        if flow.get("consumer_groups", "mm2_checkpoints") is None:
            flow.put(True, "consumer_groups", "mm2_checkpoints", note=_DEFAULT)
    elif flow.get("consumer_groups", "mm2_checkpoints"):
        flow.put(False, "consumer_groups", "mm2_checkpoints")
        flow.note("checkpoints are written with `sync` alone; MirrorMaker 2 writes them without.", "consumer_groups")


def _put_names(flow: Flow, source: str, target: str) -> None:
    policy, separator = flow.names.get("class"), flow.names.get("separator")
    has_none = separator is not None and not separator.value
    is_identity = policy is not None and policy.value.endswith("IdentityReplicationPolicy")
    is_default = policy is None or policy.value.endswith("DefaultReplicationPolicy")
    is_identity = is_identity or (is_default and has_none and not source)  # nothing before the name
    rules = routing_rules(flow, alone=is_identity)
    if rules:
        flow.put({"policy": "rules", "rules": rules}, "naming")
    if is_identity:
        return
    if policy is not None and not is_default:
        why = "own code cannot be taken over; `naming` is as by MirrorMaker 2's default, correct it"
        flow.leave(policy, why, Weight.FIRST)
        flow.note(
            f"{policy.value.rpartition('.')[2]} cannot be taken over: correct this to the names it makes.", "naming"
        )
    if has_none:
        if source:
            flow.put({"policy": "prefix", "prefix": source}, "naming")
        return
    naming = {"policy": "alias"}
    if flow.source != source:
        naming["alias"] = source
    if flow.destination != target:
        naming["destination_alias"] = target
    if separator is not None:
        naming["separator"] = separator.value
    flow.put(naming, "naming")


_DEFAULTS: Mapping[tuple[str, ...], object] = {
    ("replication_factor",): 2,
    ("configs", "sync"): True,
    ("acls", "sync"): True,
    ("heartbeats", "enabled"): True,
    ("consumer_groups", "sync"): False,
}
"""MirrorMaker 2's defaults that differ from Strait's."""


def _of_driver(properties: Mapping[str, str], draft: Draft) -> dict[tuple[str, str], list[Given]]:
    """Return each enabled flow with its properties, named as a connector has them; the more specific ones come
    first."""
    aliases = [alias for alias in (part.strip() for part in properties["clusters"].split(",")) if alias]
    enabled = []
    for source, target in permutations(aliases, 2):
        prefix = f"{source}->{target}."
        if properties.get(f"{prefix}enabled", properties.get("enabled", "false")).lower() == "true":
            enabled.append((source, target))
        else:
            for key in (key for key in properties if key.startswith(prefix)):
                draft.leave(key, "the flow is not enabled", Weight.NEEDLESS)
    if not enabled:
        raise ConfigError(_WHERE, ["no flow is enabled"], hint="MirrorMaker 2 wants `A->B.enabled = true`")
    used = {alias for flow in enabled for alias in flow}
    for key in filter(secures, properties):
        if all(f"{alias}.{key}" in properties for alias in used):
            draft.leave(key, "each cluster has its own", Weight.NEEDLESS)
    return {flow: _of_flow(properties, aliases, flow, draft) for flow in enabled}


def _of_flow(properties: Mapping[str, str], aliases: list[str], flow: tuple[str, str], draft: Draft) -> list[Given]:
    prefix = f"{flow[0]}->{flow[1]}."
    others = tuple(f"{source}->{target}." for source, target in permutations(aliases, 2) if (source, target) != flow)
    own, shared, of_all_clusters = [], [], []
    names = {name for each in MM2_ROWS for name in each.names}
    for key, value in properties.items():
        alias = next((alias for alias in aliases if key.startswith(f"{alias}.")), None)
        if key.startswith(prefix):
            own.append(Given(key.removeprefix(prefix), key, value))
        elif alias in flow:
            end = "source" if alias == flow[0] else "target"
            shared.append(Given(_of_cluster(end, key.removeprefix(f"{alias}.")), key, value))
        elif alias is None and secures(key):
            of_all_clusters += [Given(_of_cluster(end, key), key, value) for end in ("source", "target")]
        elif alias is None and key.startswith(_OF_CLIENTS) and key not in names:
            draft.leave(key, _NO_EFFECT, Weight.NEEDLESS)
        elif alias is None and key != "clusters" and not key.startswith(others):
            shared.append(Given(key, key, value))
    found: list[Given] = []
    for layer in (own, shared, of_all_clusters):
        special = {given.name for given in found}
        found += [given for given in layer if given.name not in special]
    return found


def _of_cluster(end: str, name: str) -> str:
    """Return the connector's name for a property: `A.consumer.x` is its `source.consumer.x`, `A.x` its
    `source.cluster.x`."""
    return f"{end}.{name}" if name.startswith(("consumer.", "producer.", "admin.")) else f"{end}.cluster.{name}"


def _of_connector(properties: Mapping[str, str]) -> dict[tuple[str, str], list[Given]]:
    kind = properties.get("connector.class", _SOURCE_CONNECTOR)
    if not kind.endswith(_SOURCE_CONNECTOR):
        raise ConfigError(_WHERE, [f"connector.class is {kind}"], hint=f"name the file of the {_SOURCE_CONNECTOR}")
    source = properties.get("source.cluster.alias")
    if source is None:
        raise ConfigError(_WHERE, ["neither `clusters` nor `source.cluster.alias`"], hint="is it MirrorMaker 2's?")
    target = properties.get("target.cluster.alias", "target")
    given = [Given(key, key, value) for key, value in properties.items()]
    # A cluster's properties take precedence over those of some of its clients.
    return {(source, target): sorted(given, key=lambda each: ".cluster." not in each.name)}
