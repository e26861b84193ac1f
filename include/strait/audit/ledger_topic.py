"""The rows of the replication ledger that an audit needs, and the newest of them, which are in the ledger topic."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from strait.audit.ledger_rows import NUMBERS, LedgerRow, row_of
from strait.config import naming
from strait.config.cluster import Cluster
from strait.kafka.reading import read_topic
from strait.model import TopicPartition
from strait.state.codec import Unreadable, decode, kind_of_ledger
from strait.state.ledger_records import LedgerPart

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wanted:
    """Rows of one source partition that reach beyond a destination offset.

    Attributes:
        destination, destination_id: the destination topic, and its ID: another topic may have had the name before.
    """

    place: TopicPartition
    destination: str
    destination_id: str
    copy_start: int


def rows_in_topic(cluster: Cluster, link: str, wanted: Sequence[Wanted]) -> dict[TopicPartition, list[LedgerRow]]:
    """Return the rows of each partition that the ledger topic has: those of the last three days. Raises ClusterUnavailable,
    NotAuthorized."""
    found: dict[TopicPartition, list[LedgerRow]] = {one.place: [] for one in wanted}
    known = {(*one.place, one.destination, one.destination_id): one.copy_start for one in wanted}
    for message in read_topic(*cluster, naming.ledger_topic(link)):
        if kind_of_ledger(message.key()) is not LedgerPart:
            continue
        try:
            part = decode(LedgerPart, message.key(), message.value() or b"")
        except Unreadable as error:
            log.warning("ledger topic of link %s: the record at offset %s: %s", link, message.offset(), error)
            continue
        for entry in part.entries:
            start = known.get((entry.topic, entry.partition, entry.destination, entry.destination_id))
            row = row_of({name: getattr(entry, name, part.ended_at_ms) for name in NUMBERS})
            if start is not None and row is not None and entry.destination_to > start:
                found[TopicPartition(entry.topic, entry.partition)].append(row)
    return found
