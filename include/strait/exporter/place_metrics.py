"""The metrics of topics or, on request, of partitions. Pure."""

from strait.exporter.families import Places, known_sum, soonest
from strait.planning.status.rows import longest_held_back, longest_lag

PLACES: tuple[Places, ...] = (
    Places(
        "strait_records",
        "counter",
        "Records that the link has written to the destination topic.",
        lambda rows: known_sum(row.written for row in rows),
    ),
    Places(
        "strait_lag_records",
        "gauge",
        "Records of the source that are not replicated yet, of the partitions of which that is known.",
        lambda rows: known_sum(row.lag_records for row in rows),
    ),
    Places(
        "strait_lag_seconds",
        "gauge",
        "Age of the newest replicated record where newer ones wait, else 0; of a topic that of its last partition.",
        longest_lag,
    ),
    Places(
        "strait_held_back_records",
        "gauge",
        "Records of the source that cannot be replicated yet because a transaction is open; not part of the lag.",
        lambda rows: known_sum(row.held_back_records for row in rows),
    ),
    Places(
        "strait_held_back_seconds",
        "gauge",
        "How long a transaction has held back records, else 0; of a topic that of the partition where it is longest.",
        longest_held_back,
    ),
    Places(
        "strait_seconds_to_loss",
        "gauge",
        "Time until retention deletes records that are not replicated yet, if the partition made no progress.",
        soonest,
    ),
)
