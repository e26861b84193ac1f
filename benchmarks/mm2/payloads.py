"""Values that look like what services write: JSON events with repeated names and changing content, from a fixed seed.

lz4 shrinks a batch of them to about a third, as it does with such data in the field. Zeroes would make compression free
and random bytes would make it useless; both would say nothing.
"""

import random
import string

_POOL_BYTES = 8 << 20  # far beyond lz4's window of 64 KiB, so that a value met again does not compress away
_VOCABULARY = 400
_STATES = ("created", "paid", "sent", "delivered")


def values(size_bytes: int, seed: int = 1) -> list[bytes]:
    """Different values of exactly ``size_bytes`` each, to be used round and round."""
    source = random.Random(seed)
    words = [
        "".join(source.choices(string.ascii_lowercase, k=source.randint(4, 9)))  # a plain vocabulary
        for _ in range(_VOCABULARY)
    ]
    return [_event(size_bytes, source, words) for _ in range(_POOL_BYTES // size_bytes)]


def _event(size_bytes: int, source: random.Random, words: list[str]) -> bytes:
    text = (
        f'{{"id":{source.randrange(10**9)},"user":"{source.choice(words)}","state":"{source.choice(_STATES)}",'
        f'"total":{source.randrange(10**5) / 100},"items":['
    )
    while len(text) < size_bytes:
        text += (
            f'{{"sku":"{source.choice(words)}","quantity":{source.randint(1, 9)},'
            f'"price":{source.randrange(10**4) / 100},"warehouse":"{source.choice(words)}"}},'
        )
    return text[:size_bytes].encode("ascii")
