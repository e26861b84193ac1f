"""Records in a link's quarantine, as a slot puts them there."""

from strait.embedded.kafka import Cluster
from strait.reasons import Reason
from strait.state.quarantine_records import QuarantinedRecord
from strait.state.writer import StateWriter
from strait.wire.records import Record


def keep_aside(
    cluster: Cluster, link: str, *records: Record, topic: str = "orders", partition: int = 0, destination: str = ""
) -> None:
    """Put records aside that were to go to ``destination``, by default `<link>-<topic>`."""
    writer, failed = StateWriter(cluster.client_properties, "b", link), []
    into = destination or f"{link}-{topic}"
    for each in records:
        quarantined = QuarantinedRecord(topic, partition, into, each, Reason.BATCH_REFUSED, "said the broker")
        writer.write_quarantined(quarantined, failed.append)
    assert writer.flush(60)
    assert failed == [None] * len(records)
