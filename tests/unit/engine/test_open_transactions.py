"""What is said of a transaction of the source that stays open."""

import pytest

from strait.engine.open_transactions import describe
from strait.net.transactions import Coordinated, Holder

PLACE = ("orders", 3)


def coordinated(*places: tuple[str, int]) -> dict[int, Coordinated]:
    return {7: Coordinated("orders-app", 1_000_000, frozenset(places))}


@pytest.mark.parametrize(
    ("holder", "known", "told"),
    [
        (Holder(7, 1_234), coordinated(PLACE), "since 1970-01-01 00:16:40 UTC"),
        (Holder(7, 1_234), coordinated(("orders", 2)), "it hangs"),
        (Holder(7, 1_234), coordinated(), "it hangs"),
        (Holder(7, 1_234), {}, "its transactional ID is unknown"),
        (Holder(8, 1_234), coordinated(PLACE), "its transactional ID is unknown"),
        ("UNSUPPORTED_VERSION", {}, "its producer is unknown: UNSUPPORTED_VERSION"),
    ],
)
def test_what_is_not_known_is_said(holder: Holder | str, known: dict[int, Coordinated], told: str) -> None:
    detail = describe(PLACE, 1_200, holder, known)
    assert told in detail
    assert ("producer ID" in detail) is isinstance(holder, Holder)
    assert f"from offset {1_234 if isinstance(holder, Holder) else 1_200:,}" in detail
