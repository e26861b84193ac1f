"""The consumer of state topics."""

from collections.abc import Mapping

from confluent_kafka import Consumer

from strait.config.topic_names import STATE_PREFIX
from strait.kafka.clients import STATE_ANSWER_MS, Watch, make_consumer

_FETCHED_AHEAD_KIB = 8 << 10  # by default 64 MiB, in every slot


def state_consumer(properties: Mapping[str, str], watch: Watch, name: str) -> Consumer:
    """Build a consumer for assign() that reads committed records and reports the end of each partition. ``name``: of
    the link or the pool. Raises ConfigError."""
    return make_consumer(
        properties,
        watch,
        group_id=f"{STATE_PREFIX}{name}.state",  # required by librdkafka, not used
        isolation_level="read_committed",
        enable_partition_eof=True,
        auto_offset_reset="error",  # deleted records must be detected, not skipped
        topic_metadata_refresh_interval_ms=10_000,  # only a refresh detects a deleted topic
        socket_timeout_ms=STATE_ANSWER_MS,
        fetch_wait_max_ms=100,  # an empty fetch marks a topic's end, so catching up takes this long
        queued_max_messages_kbytes=_FETCHED_AHEAD_KIB,
        fetch_queue_backoff_ms=10,
    )
