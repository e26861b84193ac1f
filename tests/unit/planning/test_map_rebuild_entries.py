"""A map that is rebuilt keeps the words about records that are not on the destination yet."""

from strait.planning.map_rebuild.entries import replaced
from support.model.reports import plain_run


def test_words_ahead_of_the_last_record_stay() -> None:
    """A dropped tail and a gap that was written ahead; a checkpoint beyond what is there says nothing true."""
    rebuilt = plain_run(source_base=5, destination_base=0, sequence_base=0, sequence_end=10)
    old = rebuilt.model_copy(update={"sequence_end": 9, "source_base": 4})
    ahead = rebuilt.model_copy(update={"sequence_base": 10, "sequence_end": 10, "source_base": 50})
    beyond = rebuilt.model_copy(update={"sequence_base": 11, "sequence_end": 20, "source_base": 60})
    other = old.model_copy(update={"source_id": "another"})
    assert replaced([old, ahead, beyond, other], [rebuilt]) == [old, beyond]
