"""MirrorMaker 2's bytes, as its own classes read and write them."""

from strait.consumer_groups.checkpoints import Checkpoint, OffsetSync
from strait.model import TopicPartition


def test_a_checkpoint_has_mirror_maker_2s_bytes() -> None:
    checkpoint = Checkpoint("g1", TopicPartition("src.orders", 3), upstream=1000, offset=900)
    assert checkpoint.key().hex() == "00026731" + "000a7372632e6f7264657273" + "00000003"
    assert checkpoint.value().hex() == "0000" + "00000000000003e8" + "0000000000000384" + "0000"


def test_an_offset_sync_has_mirror_maker_2s_bytes() -> None:
    sync = OffsetSync(TopicPartition("orders", 3), upstream=1000, offset=900)
    assert sync.key().hex() == "00066f7264657273" + "00000003"
    assert sync.value().hex() == "00000000000003e8" + "0000000000000384"


def test_lengths_are_those_of_the_bytes() -> None:
    assert Checkpoint("gü", TopicPartition("t", 0), 1, 1).key() == b"\x00\x03g\xc3\xbc\x00\x01t\x00\x00\x00\x00"
