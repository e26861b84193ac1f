"""The demo's records, written by a shop and its warehouse. Pure; the same seed yields the same records."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class ShopTopic:
    """One topic. ``share`` is its fraction of its cluster's records; ``codec`` its producer's compression type."""

    partitions: int
    codec: str
    share: float


@dataclass(frozen=True, slots=True)
class ShopRecord:
    """One record to produce; a ``value`` of None is a tombstone."""

    topic: str
    key: bytes
    value: bytes | None
    headers: Headers


# Several codecs and partition counts, since a link has to replicate each of them unchanged.
SHOP: Mapping[str, ShopTopic] = {
    "clicks": ShopTopic(partitions=6, codec="lz4", share=0.6),
    "invoices": ShopTopic(partitions=2, codec="none", share=0.02),
    "orders": ShopTopic(partitions=4, codec="zstd", share=0.3),
    "payments": ShopTopic(partitions=2, codec="snappy", share=0.08),
}
WAREHOUSE: Mapping[str, ShopTopic] = {"shipments": ShopTopic(partitions=3, codec="gzip", share=1.0)}

_PAGES = ("/", "/search", "/cart", "/checkout", "/product/{}")
_METHODS = ("card", "transfer", "wallet")
_CARRIERS = ("bike", "van", "post")


def records(topics: Mapping[str, ShopTopic], seed: int) -> Iterator[ShopRecord]:
    """Yield records of these topics in proportion to their shares, endlessly."""
    rng = random.Random(seed)  # noqa: S311  made-up data
    names = sorted(topics)
    shares = [topics[name].share for name in names]
    while True:
        for name in rng.choices(names, weights=shares, k=1000):
            yield _MAKERS[name](rng)


def scanned_invoice(seed: int, size_bytes: int) -> ShopRecord:
    """Return a scanned invoice: a record of at least ``size_bytes``."""
    rng = random.Random(seed)  # noqa: S311  made-up data
    invoice = f"invoice-{rng.randrange(1_000_000)}"
    return _record(rng, "invoices", invoice, {"invoice": invoice, "scan": rng.randbytes(size_bytes // 2 + 1).hex()})


def _click(rng: random.Random) -> ShopRecord:
    visitor = f"visitor-{rng.randrange(5_000)}"
    page = rng.choice(_PAGES).format(rng.randrange(2_000))
    return _record(rng, "clicks", visitor, {"visitor": visitor, "page": page, "dwell_ms": rng.randrange(60_000)})


def _invoice(rng: random.Random) -> ShopRecord:
    invoice = f"invoice-{rng.randrange(1_000_000)}"
    order = f"order-{rng.randrange(1_000_000)}"
    return _record(rng, "invoices", invoice, {"invoice": invoice, "order": order, "cents": rng.randrange(100, 50_000)})


def _order(rng: random.Random) -> ShopRecord:
    order = f"order-{rng.randrange(1_000_000)}"
    lines = [{"product": rng.randrange(2_000), "quantity": rng.randrange(1, 5)} for _ in range(rng.randrange(1, 4))]
    return _record(rng, "orders", order, {"order": order, "customer": rng.randrange(5_000), "lines": lines})


def _payment(rng: random.Random) -> ShopRecord:
    order = f"order-{rng.randrange(1_000_000)}"
    if rng.random() < 0.02:  # withdrawn
        return _record(rng, "payments", order, None)
    paid = {"order": order, "method": rng.choice(_METHODS), "cents": rng.randrange(100, 50_000)}
    return _record(rng, "payments", order, paid)


def _shipment(rng: random.Random) -> ShopRecord:
    order = f"order-{rng.randrange(1_000_000)}"
    return _record(rng, "shipments", order, {"order": order, "carrier": rng.choice(_CARRIERS)})


def _record(rng: random.Random, topic: str, key: str, body: object | None) -> ShopRecord:
    value = None if body is None else json.dumps(body, separators=(",", ":")).encode()
    trace: bytes | None = b"%016x" % rng.getrandbits(64)
    if rng.random() < 0.01:
        trace = None  # a null header value is legal, and differs from an empty one
    return ShopRecord(topic, key.encode(), value, [("schema", f"{topic}.v1".encode()), ("trace", trace)])


_MAKERS: Mapping[str, Callable[[random.Random], ShopRecord]] = {
    "clicks": _click,
    "invoices": _invoice,
    "orders": _order,
    "payments": _payment,
    "shipments": _shipment,
}
