"""A translated links file in its readable form: YAML, with a comment at each assumption. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from strait.importing.draft import Draft, Path

_LAYERS = 2  # `clusters`, `links` and their entries; a block inside an entry is one line, unless it has a comment
_WIDTH = 10_000  # lines are not folded: a comment is above the line that it is about


def as_yaml(draft: Draft) -> str:
    """Return the links file as YAML."""
    return "".join(_block(draft.as_data(), draft.notes, ()))


def _block(block: Mapping[str, Any], notes: Mapping[Path, list[str]], path: Path) -> Iterator[str]:
    indent = "  " * len(path)
    for key, value in block.items():
        here = (*path, key)
        for note in notes.get(here, ()):
            yield f"{indent}# {note}\n"
        deeper = any(len(other) > len(here) and other[: len(here)] == here for other in notes)
        if isinstance(value, dict) and (len(path) < _LAYERS or deeper):
            yield f"{indent}{_inline(key)}:\n"
            yield from _block(value, notes, here)
        else:
            yield f"{indent}{_inline(key)}: {_inline(value)}\n"


def _inline(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=_WIDTH, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
