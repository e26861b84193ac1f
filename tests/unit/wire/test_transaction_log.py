"""Records of Kafka's transaction log, in both versions."""

from struct import pack

import pytest

from strait.errors import ProtocolError
from strait.wire.transaction_log import PREPARE_COMMIT, TransactionStep, read_step

KEY = b"\0\0" + pack(">h", 6) + "tx-é".encode() + b"!"
HEAD = (42, 3, 60_000, PREPARE_COMMIT)
TIMES = pack(">qq", 1_700_000_000_000, 1_600_000_000_000)
PLACES = (("orders", 0), ("orders", 300), ("pay", 1))


def plain() -> bytes:
    places = pack(">i", 2) + b"\0\x06orders" + pack(">iii", 2, 0, 300) + b"\0\x03pay" + pack(">ii", 1, 1)
    return pack(">hqhib", 0, *HEAD) + places + TIMES


def compact() -> bytes:
    places = b"\x03" + b"\x07orders" + b"\x03" + pack(">ii", 0, 300) + b"\0" + b"\x04pay\x02" + pack(">i", 1) + b"\0"
    return pack(">hqhib", 1, *HEAD) + places + TIMES + b"\x01\x02\x02\0\x02"


@pytest.mark.parametrize("value", [plain(), compact()], ids=["0", "1"])
def test_a_step_names_its_transaction_and_its_partitions(value: bytes) -> None:
    assert read_step(KEY, value) == TransactionStep("tx-é!", 42, PREPARE_COMMIT, PLACES, 1_700_000_000_000)


@pytest.mark.parametrize(
    "value", [pack(">hqhib", 0, *HEAD) + pack(">i", -1) + TIMES, pack(">hqhib", 1, *HEAD) + b"\0" + TIMES + b"\0"]
)
def test_a_step_without_partitions(value: bytes) -> None:
    step = read_step(KEY, value)
    assert step is not None
    assert step.partitions == ()


@pytest.mark.parametrize(("key", "value"), [(KEY, None), (None, b""), (b"\0\1\0\0", plain())])
def test_what_is_no_step_is_none(key: bytes | None, value: bytes | None) -> None:
    assert read_step(key, value) is None


@pytest.mark.parametrize("value", [plain()[:-9], compact()[:30], b"", b"\0\2" + plain()[2:]])
def test_what_cannot_be_read_is_refused(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_step(KEY, value)
