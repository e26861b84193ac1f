"""The state that checkouts up to commit cec66a5c left: the map in segments of a week and a gigabyte, a record for each partition and
minute, and reports that each held every partition. Byte for byte as that version wrote them, whatever this one does."""

import json
import zlib

from confluent_kafka import Producer

from endurance.aged_slot import AgedSlot
from endurance.compressed_time import Clock
from endurance.rig_link import RigLink
from endurance.scenario import Say, Sizes
from strait.config import naming
from strait.engine.partition.partition import Partition
from support.kafka.topics import alter

_BROKERS_DEFAULTS = {
    "segment.ms": str(7 * 24 * 60 * 60 * 1000),
    "segment.bytes": str(1 << 30),
    "min.cleanable.dirty.ratio": "0.5",
    "max.compaction.lag.ms": str((1 << 63) - 1),
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": str(24 * 60 * 60 * 1000),
}
"""In force where a topic had no settings of its own, as the state topics of that version."""


def write_old_checkpoints(link: RigLink, clock: Clock, sizes: Sizes, say: Say) -> list[float]:
    """One record for each partition and minute; returns megabytes of the map, at times evenly spread."""
    topic, map_mb = naming.map_topic(link.name), []
    alter(link.destination, topic, **{name.replace(".", "_"): value for name, value in _BROKERS_DEFAULTS.items()})
    producer = Producer(link.destination.client_properties | {"compression.type": "zstd", "linger.ms": 20})
    with clock.in_force(), AgedSlot(link, clock, sizes.seed) as slot:
        for minute in range(sizes.minutes):
            slot.acknowledge_minute()
            for partition in slot.partitions:
                key, value = _checkpoint(partition, slot.records, clock.now_ms)
                while True:
                    try:
                        producer.produce(topic, value, key, 0)
                        break
                    except BufferError:
                        producer.poll(0.1)
            producer.flush()
            if (minute + 1) % max(1, sizes.minutes // 10) == 0:
                map_mb.append(link.state_bytes("map") / 1e6)
                say(f"{minute + 1} of {sizes.minutes} minutes; map {map_mb[-1]:.1f} MB")
        slot.fill()
    return map_mb


def _checkpoint(partition: Partition, sequence_end: int, at_ms: int) -> tuple[bytes, bytes]:
    source_id, destination_id = partition.ids
    said = (partition.destination, source_id, destination_id, 0, 0, "")
    place = {"topic": partition.topic, "partition": partition.number}
    key = place | {"sequence_base": 0, "check": zlib.crc32(json.dumps(said).encode())}
    value = {"v": 1} | place | {
        "destination": partition.destination,
        "source_id": source_id,
        "destination_id": destination_id,
        "source_base": 0,
        "destination_base": 0,
        "sequence_base": 0,
        "gaps": "",
        "sequence_end": sequence_end,
        "shared": False,
        "source_epoch": 0,
        "after_unknown": False,
        "checkpoint_at_ms": at_ms,
    }  # fmt: skip
    return _json(key), _json(value)


def _json(said: dict[str, object]) -> bytes:
    return json.dumps(said, separators=(",", ":")).encode()
