"""Offset segments in the form in which this version writes them, recognized without parsing. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from strait.config.route_names import ARROW
from strait.state.schema import OffsetMapping

_NUMBER = rb"(?:0|[1-9]\d{0,17})"
_TEXT = rb'"[ !#-\[\]-~]*(?:%s[ !#-\[\]-~]*)?"' % ARROW.encode()  # with an arrow, it is the name of a route
_SHAPES: Mapping[Any, bytes] = {int: rb"-?" + _NUMBER, str: _TEXT, bool: rb"(?:true|false)"}


def _shape(name: str) -> bytes:
    field = OffsetMapping.model_fields[name]
    if name == "v":
        return b"1"
    return _NUMBER if field.metadata else _SHAPES[field.annotation]


_LATER = "transform"  # the last field, written only if there is one


def _shapes(names: Iterable[str]) -> bytes:
    return b",".join(b'"%s":%s' % (name.encode(), _shape(name)) for name in names)


_NAMES = tuple(name for name in OffsetMapping.model_fields if name != _LATER)
_GAPS = _NAMES.index("gaps")
_BEFORE_GAPS = re.compile(rb'\{%s,"gaps":"' % _shapes(_NAMES[:_GAPS]))
_BEHIND_GAPS = re.compile(
    rb'",%s(?:,"%s":"[0-9a-f]+")?\}' % (_shapes(_NAMES[_GAPS + 1 :]), _LATER.encode()),
)


def is_plain(raw_value: bytes) -> bool:
    """Return whether a value is in the form that this version writes. It can then be decoded, unless its gaps were altered or
    its key is wrong. Gaps are nearly all of a large map, so only their end is looked for."""
    before = _BEFORE_GAPS.match(raw_value)
    if before is None:
        return False
    end = raw_value.find(b'"', before.end())
    return end >= 0 and _BEHIND_GAPS.fullmatch(raw_value, end) is not None
