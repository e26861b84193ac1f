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

MOST_DIGITS = 10_000
"""Of a decimal number in quotes. The time that Spark takes grows with the square; its JSON parser permits 1,000 without quotes."""

_ESCAPED_E = re.compile(rb"\\u00[46]5")
_UNQUOTED = re.compile(rb"[\[:,]\s*[-+]?[0-9.]+[eE][-+]?[0-9]{4,}\s*[,}\]]")
# The closing quote is not consumed: it may be the opening one of the next text.
_QUOTED = re.compile(rb"""(["'])\s*([-+.,0-9\\\x80-\xff][-+.,0-9a-fA-Fu\\\x80-\xff]*)(?=\1)""")
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?(\d+))?")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")

# Bits of a byte: it is e or E; it may be part of a number that has an exponent, or of an escaped digit; it is a backslash; it may
# follow a number; it may be in an escaped digit.
_E, _PART, _BACKSLASH, _END, _HEX = 1, 2, 4, 8, 16
_BITS = np.zeros(256, np.uint8)
_BITS[[*b"eE"]] = _E
_BITS[[*b"+-.,0123456789\\", *range(0x80, 0x100)]] = _PART
_BITS[[*b"\\"]] |= _BACKSLASH
_BITS[[*b"\"',]} \t\r\n"]] |= _END
_BITS[[*b"ABCDEFabcdefu"]] |= _HEX
_BITS_OF = _BITS.tobytes()
_AFTER = 5  # bytes after an e that are tried before the whole value is searched


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
    """Return for each row whether its bytes have a number with an exponent of four digits or more, or with more than `MOST_DIGITS`, also as
    a text that Spark reads as a number: bool. Spark writes out all digits of a decimal number before it finds that they are too many."""
    found = np.zeros(rows, np.bool_)
    starts = values.starts[: rows + 1]
    text = values.data.tobytes()
    bits = np.frombuffer(text.translate(_BITS_OF) + bytes(_AFTER), np.uint8)
    places = np.concatenate([_exponents(text, bits), _long_numbers(bits)])
    suspects = np.unique(np.searchsorted(starts, places, "right") - 1)
    for row in suspects[suspects < rows].tolist():  # bytes after the last row are of none
        value = values.at(row)
        found[row] = value is not None and _has_immense(value)
    return found


def _has_immense(value: bytes) -> bool:
    if _UNQUOTED.search(value):
        return True
    return any(_is_immense(text[2]) for text in _QUOTED.finditer(value))


def _is_immense(text: bytes) -> bool:
    """Return whether Spark reads a quoted text as such a number: it removes commas, and accepts digits of any script."""
    plain = _ESCAPED.sub(lambda one: chr(int(one[1], 16)), text.decode(errors="replace")).replace(",", "")
    number = _NUMBER.fullmatch(plain)
    return number is not None and (len(number[1] or "") > 3 or len(plain) > MOST_DIGITS)


def _exponents(text: bytes, bits: Any) -> Any:
    """Return the positions of each e after which an exponent of four digits may follow."""
    found = np.flatnonzero((bits[:-_AFTER] & bits[1 : 1 - _AFTER] >> 1 & _E) > 0)  # of bool, ten times as fast
    found = found[(bits[found - 1] & _PART | bits[found - 6] & _BACKSLASH) > 0]  # or after an escaped digit
    escaped = bits[found + 1] & _BACKSLASH
    for further in range(2, _AFTER + 1):
        now = bits[found + further]
        stays = (now & (_PART | (_END if further == _AFTER else 0)) | escaped) > 0
        found, escaped = found[stays], (escaped | now & _BACKSLASH)[stays]
    if b"\\u00" not in text:
        return found
    return np.concatenate([found, np.array([one.start() for one in _ESCAPED_E.finditer(text)], np.int64)])


def _long_numbers(bits: Any) -> Any:
    """Return positions in all texts that may be a number of more than `MOST_DIGITS`: each has ten bytes at these distances."""
    step = MOST_DIGITS // 10
    found = bits[::step] & (_PART | _HEX) > 0
    for _ in range(9):
        found = found[1:] & found[:-1]
    return np.flatnonzero(found) * step


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
