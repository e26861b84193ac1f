"""Exporting a link's tail: into a file, or into a topic of the destination."""

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import IO

from strait.config import naming
from strait.control.other_links import claims
from strait.control.registration import repair_writer
from strait.errors import ConfigError, PlanConflict, SetupError
from strait.kafka.admin import Admin
from strait.kafka.reading import read_ranges
from strait.kafka.transactions import TransactionalWriter, chunks
from strait.model import TopicPartition
from strait.planning.tail import TailPart
from strait.state.tail_records import Origin, TailRecord, as_line, origin_headers, origin_of
from strait.text import plural

_WHERE = "tail export"
_CONFIGS = ("cleanup.policy", "message.timestamp.type")


def to_file(path: Path, records: Iterable[TailRecord]) -> Counter[TopicPartition]:
    """Write each record as a line of JSON into a new file that only its owner may read; return the number of records of
    each partition. The file appears once it is complete: until then its name ends with ``.part``.

    Raises:
        ConfigError: there is such a file.
        SetupError: it cannot be written.
    """
    counted: Counter[TopicPartition] = Counter()
    with _new_file(path) as file:
        for record in records:
            file.write(as_line(record))
            counted[TopicPartition(record.topic, record.partition)] += 1
    return counted


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[IO[str]]:
    part = path.with_name(path.name + ".part")
    _require_new(path)
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        hint = "delete it if no other export is running"
        raise ConfigError(_WHERE, [f"file {part} exists: another export writes it, or was killed"], hint=hint) from None
    except OSError as error:
        raise SetupError(f"{_WHERE}: creating {part}: {error.strerror}") from error
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _require_new(path)
        part.rename(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise SetupError(f"{_WHERE}: writing {part}: {error.strerror}") from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _require_new(path: Path) -> None:
    if os.path.lexists(path):
        raise ConfigError(_WHERE, [f"file {path} exists; name another one"])


class TopicExport:
    """Exports into one topic of the destination, each record once, however often the export is interrupted and
    repeated: records that the topic already holds are not written again.

    Raises (every method): ClusterUnavailable, NotAuthorized.
    """

    def __init__(self, admin: Admin, link: str, topic: str) -> None:
        self._admin = admin
        self._link = link
        self._topic = topic

    def require_fit(self, parts: Collection[TailPart], copies: Collection[str]) -> None:
        """Check that the topic can accept the records. Raises ConfigError if it cannot.

        Args:
            copies: topics that the link writes to.
        """
        facts = self._admin.observe(self._topic.__eq__, _CONFIGS).topics.get(self._topic)
        highest = max((part.partition for part in parts if part.has_offsets), default=0)
        problem = ""
        if naming.is_internal(self._topic):
            problem = f"{self._topic} is an internal topic"
        elif self._topic in copies:
            problem = f"the link itself writes into {self._topic}; `strait start {self._link}` copies the records there"
        elif masked := sorted({part.topic for part in parts if part.has_offsets and part.transformed}):
            problem = (
                f"the records of {', '.join(masked)} are as they are on the source, and its rule transforms them: "
                f"`strait start {self._link}` copies them, --out writes them to a file"
            )
        elif facts is None:
            problem = f"the destination has no topic {self._topic}; create it, with {plural(highest + 1, 'partition')} or more"
        elif facts.denied:
            problem = f"whether topic {self._topic} keeps every record with its timestamp is unknown: {facts.denied}"
        elif facts.partitions <= highest:
            problem = f"topic {self._topic} has {plural(facts.partitions, 'partition')}, and records are of partition {highest}"
        elif "compact" in facts.configs.get("cleanup.policy", ""):
            problem = f"topic {self._topic} is compacted, so it does not keep every record; use cleanup.policy=delete"
        elif facts.configs.get("message.timestamp.type") == "LogAppendTime":
            problem = f"topic {self._topic} would replace every timestamp; use message.timestamp.type=CreateTime"
        if not problem and (claim := claims(*self._admin.at, self._link, [self._topic]).get(self._topic)):
            problem = f"topic {self._topic}: {claim.why}"
        if problem:
            raise ConfigError(_WHERE, [problem])

    def write(self, records: Iterable[TailRecord]) -> Counter[TopicPartition]:
        """Write the records that the topic does not hold yet, each into its own partition; return the number of records
        of each source partition.

        Raises:
            ConfigError: the topic holds a record that is not of such an export, or has lost some.
            PlanConflict: another export of the link's tail has started since, or another producer's transaction is open
                in the topic.
            ClusterError: the destination rejects a record; those before it may be there.
        """
        with repair_writer(
            self._admin,
            self._link,
            naming.tail_transactional_id(self._link),
            doing="taking over the export of the tail",
            taken_over="another export of the tail has begun",
            hint="run it again once that one is over",
        ) as writer:
            there = self._exported()
            new = (record for record in records if record.origin(self._link) not in there)
            return self._write(writer, new)

    def _write(self, writer: TransactionalWriter, records: Iterable[TailRecord]) -> Counter[TopicPartition]:
        counted: Counter[TopicPartition] = Counter()
        for chunk in chunks(records, lambda record: record.bytes):
            with writer.transaction("exporting the tail"):
                for record in chunk:
                    place = TopicPartition(record.topic, record.partition)
                    writer.produce(
                        f"exporting {place} offset {record.offset} into {self._topic}",
                        topic=self._topic,
                        partition=record.partition,
                        key=record.key,
                        value=record.value,
                        headers=origin_headers(record, self._link),
                        timestamp=record.timestamp_ms,
                    )
                    counted[place] += 1
        return counted

    def _exported(self) -> set[Origin]:
        number = self._admin.observe(lambda _: False).topics[self._topic].partitions
        places = [TopicPartition(self._topic, partition) for partition in range(number)]
        starts, ends, logs = (self._admin.offsets(places, where) for where in ("earliest", "latest", "end"))
        deleted = [place for place in places if starts[place]]
        if deleted:
            problem = f"{deleted[0]} has lost records before offset {starts[deleted[0]]}, and what they were is unknown"
            raise ConfigError(_WHERE, [problem], hint="name a new topic, with retention.ms=-1 and retention.bytes=-1")
        hidden = [place for place in places if ends[place] < logs[place]]
        if hidden:
            raise PlanConflict(
                f"{_WHERE}: {hidden[0]} holds an open transaction, so it cannot be seen what was exported before",
                hint="run it again once nothing else writes to the topic",
            )
        found = set()
        for message in read_ranges(*self._admin.at, {place: (0, ends[place]) for place in places}):
            origin = origin_of(message.headers() or ())
            if origin is None:
                at = f"{message.topic()}-{message.partition()} offset {message.offset()}"
                raise ConfigError(_WHERE, [f"{at} is no exported record; name a topic that holds nothing else"])
            found.add(origin)
        return found
