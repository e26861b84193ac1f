"""The failovers of a link, in a topic of its own on the destination: each step of each, kept for ever.

Whoever goes on with a failover writes a turn of its own into the record first. The turn that began last is the one that
counts, so of two processes at most one takes the next step.
"""

from collections.abc import Mapping

from strait.config import naming
from strait.errors import PlanConflict, StateError
from strait.kafka.admin import Admin
from strait.kafka.reading import read_topic
from strait.kafka.writing import write_record
from strait.state.codec import Unreadable, decode, encode
from strait.state.failover_records import Failover
from strait.state.topics import ensure_failovers_topic


class Journal:
    """Raises (every method): ClusterUnavailable, NotAuthorized, StateError."""

    def __init__(self, properties: Mapping[str, str], cluster: str, link: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._link = link
        self._topic = naming.failovers_topic(link)
        self._is_there = False

    def all(self) -> list[Failover]:
        """Every failover as it ended or stands now, the oldest first."""
        return list({record.id: record for record in self._read()}.values())

    def write(self, record: Failover) -> None:
        """Raises PlanConflict where another turn has begun since."""
        if not self._is_there:
            ensure_failovers_topic(Admin(self._properties, self._cluster), self._link)
            self._is_there = True
        key, value = encode(record)
        write_record(self._properties, self._cluster, self._topic, key, value, f"writing failover {record.id}")
        turns = list(dict.fromkeys(found.turn for found in self._read() if found.kind != "rehearsal"))
        if record.kind != "rehearsal" and turns[-1:] != [record.turn]:
            raise PlanConflict(
                f"link {self._link}: failover {record.id}: another process has taken it over",
                hint="see strait failover --history",
            )

    def _read(self) -> list[Failover]:
        found = []
        for message in read_topic(self._properties, self._cluster, self._topic):
            try:
                found.append(decode(Failover, message.key(), message.value() or b""))
            except Unreadable as error:
                raise StateError(
                    f"link {self._link}: reading {self._topic}: the record at offset {message.offset()}: {error}",
                    hint="a newer version of Strait may have written it",
                ) from None
        return found
