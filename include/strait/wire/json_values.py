"""JSON values that are not one object. Pure.

Spark's `from_json` reads the first value and ignores the rest, so this finds the end of a value: the brace that closes all
braces and brackets outside of text. For bytes that `from_json` accepts as an object this is exact, and others are
malformed anyway. `NaN` and `Infinity`, which are no JSON, are not accepted outside of text. Nor are bytes that are not in UTF-8:
`from_json` would replace them, also in fields that the rule does not set.
"""

import re
from typing import Any

import numpy as np

from strait.wire.columns import Column

try:
    from strait.wire import columnar
except ImportError:
    columnar = None  # type: ignore[assignment]

_SPACE = b" \t\r\n"
_TOKENS = re.compile(rb"""(?s)[{\[]|[}\]]|[NI]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|["']""")

_ESCAPED = b"\\u00"
_IMMENSE = re.compile(rb"""[\[:,]\s*["']?\s*[-+]?[0-9.]+[eE][-+]?[0-9]{4,}\s*["',}\]]|\\u00(?:3[0-9]|[46]5)""")


def not_one_object(values: Column, rows: int) -> Any:
    """Return for each row whether it has bytes that are not one JSON object with nothing but white space around it: bool."""
    found = np.zeros(max(1, rows), np.uint8)
    if columnar is not None:
        columnar.not_one_object(values.data, values.starts, values.valid, rows, found)
    else:
        for row in range(rows):
            value = values.at(row)
            found[row] = value is not None and not _is_one_object(value.strip(_SPACE))
    return found[:rows].view(np.bool_)


def immense_decimals(values: Column, rows: int) -> Any:
    """Return for each row whether its bytes may have a number with an exponent of four digits or more, with or without quotes,
    or with escaped digits: bool. Spark writes out all digits of a decimal number before it finds that they are too many."""
    found = np.zeros(rows, np.bool_)
    suspects = np.unique(np.searchsorted(values.starts[: rows + 1], _exponents(values.data), "right") - 1)
    for row in suspects[suspects < rows].tolist():  # bytes after the last row are of none
        value = values.at(row)
        found[row] = value is not None and _IMMENSE.search(value) is not None
    return found


def _exponents(data: Any) -> Any:
    """Return the positions of bytes after which an exponent of four digits may follow, or of an escaped digit."""
    padded = np.concatenate([data, np.zeros(5, np.uint8)])
    digit = padded - np.uint8(48) < 10
    found = np.flatnonzero((padded[:-5] | 32 == ord("e")) & digit[3:-2] & digit[4:-1])
    signed = (padded[found + 1] == ord("+")) | (padded[found + 1] == ord("-"))
    found = found[(signed | digit[found + 1]) & digit[found + 2] & (digit[found + 5] | ~signed)]
    if _ESCAPED not in (text := data.tobytes()):
        return found
    return np.union1d(found, [one.start() for one in re.finditer(re.escape(_ESCAPED), text)])


def _is_one_object(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    if not text.startswith(b"{"):
        return False
    depth = 0
    for token in _TOKENS.finditer(text):
        one = token[0]
        if one in (b"{", b"["):
            depth += 1
        elif one in (b"}", b"]"):
            depth -= 1
            if not depth:
                return token.end() == len(text)
        elif one in (b"N", b"I", b'"', b"'"):
            return False
    return False
