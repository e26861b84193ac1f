"""The failovers of a link, in a dedicated topic on the destination: each step of each failover, kept forever.

A process that resumes a failover first writes its own turn into the record. Only the turn that started last is valid,
so of two processes at most one takes the next step, and later records of the other one are ignored.
"""

from strait.config import naming
from strait.errors import FailoverTakenOver, StateError
from strait.kafka.reading import read_topic
from strait.kafka.writing import write_record
from strait.state.codec import Unreadable, decode, encode
from strait.state.failover_records import Failover
from strait.state.link_handle import LinkHandle
from strait.state.topics import ensure_kept_topic


class Journal:
    """Reads and writes the failovers of one link. Raises (every method): ClusterUnavailable, NotAuthorized,
    StateError."""

    def __init__(self, link: LinkHandle) -> None:
        self._link = link
        self._topic = naming.failovers_topic(link.name)
        self._is_there = False
        self._next = 0
        self._found: dict[str, Failover] = {}
        self._turns: set[str] = set()
        self._owner = ""

    def all(self) -> list[Failover]:
        """Return every failover in its latest recorded state, oldest first."""
        self._read_on()
        return list(self._found.values())

    def write(self, record: Failover) -> None:
        """Append a record. Raises FailoverTakenOver if another turn has started since."""
        if not self._is_there:
            ensure_kept_topic(self._link.admin("destination"), self._link.name, self._topic)
            self._is_there = True
        key, value = encode(record)
        write_record(*self._link.destination, self._topic, key, value, f"writing failover {record.id}")
        self.require_turn(record)

    def require_turn(self, record: Failover) -> None:
        """Raises FailoverTakenOver if another turn than the record's has started since."""
        self._read_on()
        if record.kind != "rehearsal" and self._owner != record.turn:
            raise FailoverTakenOver(
                f"link {self._link.name}: failover {record.id}: another process has taken it over",
                hint="see strait failover --history",
            )

    def _read_on(self) -> None:
        for message in read_topic(*self._link.destination, self._topic, first=self._next):
            self._next = (message.offset() or 0) + 1
            try:
                self._take(decode(Failover, message.key(), message.value() or b""))
            except Unreadable as error:
                raise StateError(
                    f"link {self._link.name}: reading {self._topic}: the record at offset {message.offset()}: {error}",
                    hint="a newer version of Strait may have written it",
                ) from None

    def _take(self, record: Failover) -> None:
        if record.kind != "rehearsal" and record.turn != self._owner:
            if record.turn in self._turns:
                return  # written by a process that did not know yet that it had lost its turn
            self._turns.add(record.turn)
            self._owner = record.turn
        self._found[record.id] = record
