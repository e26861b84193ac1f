"""Topics that were known by name only and now have an ID. Pure.

Topics of a cluster on ZooKeeper have no ID until its `inter.broker.protocol.version` is 2.8. Their offset segments stay
valid if they are the same topics, which is determined by the comparison of the last record.
"""

from collections.abc import Sequence

from strait.model import is_known_id
from strait.state.schema import OffsetMapping


def adopted(
    runs: Sequence[OffsetMapping], destination: str, source_id: str, destination_id: str
) -> Sequence[OffsetMapping]:
    """Return a partition's offset segments, with the IDs that were unknown when they were written.

    An unknown ID is the first one that a later segment has, else that of the current topic. While a topic has none, all
    segments are treated as its own, since topics of one name cannot be distinguished.

    Args:
        runs: by sequence_base.
        destination, source_id, destination_id: the current topics. Segments of another destination stay unchanged.
    """
    known = is_known_id(source_id) and is_known_id(destination_id)
    if known and all(is_known_id(run.source_id) and is_known_id(run.destination_id) for run in runs):
        return runs
    into = [run for run in runs if run.destination == destination]
    source_first = next((run.source_id for run in into if is_known_id(run.source_id)), source_id)
    destination_first = next((run.destination_id for run in into if is_known_id(run.destination_id)), destination_id)

    def identified(run: OffsetMapping) -> OffsetMapping:
        ids = {
            "source_id": _identified(run.source_id, source_id, source_first),
            "destination_id": _identified(run.destination_id, destination_id, destination_first),
        }
        return run.model_copy(update=ids)

    return tuple(identified(run) if run.destination == destination else run for run in runs)


def _identified(written: str, now: str, first: str) -> str:
    if not is_known_id(now):
        return now
    return written if is_known_id(written) else first
