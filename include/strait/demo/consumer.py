"""The shop's billing: a consumer group on the source. The link keeps its offsets ready on the destination."""

import threading

from confluent_kafka import Consumer

GROUP = "billing"
TOPICS = ("orders", "payments")
_POLL_SECONDS = 0.5
_MOST_RECORDS = 1000


def consume(bootstrap: str, stop: threading.Event) -> None:
    """Consume its topics from the earliest offset, and commit every second, until ``stop`` is set."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
        }
    )
    consumer.subscribe(list(TOPICS))
    try:
        while not stop.is_set():
            consumer.consume(_MOST_RECORDS, _POLL_SECONDS)
    finally:
        consumer.close()
