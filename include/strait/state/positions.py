"""Replication positions in the formats of other tools, read and written: files with Mirus' columns or Strait's own, and
records of Kafka Connect. Pure.

A position in this module is always the offset of the next record to copy. MirrorMaker 2 stores the offset of the last
record copied instead; Mirus stores the next one.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from strait.errors import ConfigError
from strait.json_text import value_of
from strait.model import TopicPartition
from strait.state.translation import Fit

MM2_CONNECTOR = "MirrorSourceConnector"
"""The connector's name in MirrorMaker 2 if it runs without Connect's REST API."""

Positions = Mapping[TopicPartition, int | None]
"""None: the partition is listed, but without an offset."""

_MIRUS_COLUMNS = ("connectorId", "topic", "partition", "offset")
_COLUMNS = ("topic", "partition", "offset")
_OF_CONNECT = ({"topic", "partition"}, {"topic", "partition", "cluster"})


@dataclass(frozen=True, slots=True)
class Position:
    """How far a partition is copied.

    Attributes:
        offset: the next source offset to copy; None: it is unknown, or copying has not started.
        destination_offset: the offset that the next record gets on the destination.
        fit: accuracy of ``offset``, as for translated offsets.
    """

    topic: str
    partition: int
    offset: int | None
    destination: str
    destination_offset: int | None
    fit: str
    detail: str = ""

    @property
    def certain(self) -> bool:
        """Whether another tool may continue there: it is exact, or no record of the partition was ever copied."""
        return self.fit == Fit.EXACT if self.offset is not None else self.fit == Fit.NOT_REPLICATED

    @property
    def place(self) -> TopicPartition:
        """The source partition."""
        return TopicPartition(self.topic, self.partition)


class ConnectOffset(NamedTuple):
    """One entry of an offsets topic of Kafka Connect: its connector and source partition, and the position."""

    connector: str
    cluster: str | None
    place: TopicPartition
    position: int | None


def read_positions(text: str, where: str) -> dict[TopicPartition, int | None]:
    """Read the positions in a file: JSON (Strait's or Mirus') or CSV (with headings, Mirus' four columns, or topic,
    partition and offset).

    Raises:
        ConfigError: a row is not a position, two rows are for one partition, or the file has no position.
    """
    rows = _json_rows(text, where) if text.lstrip()[:1] in ("{", "[") else _csv_rows(text)
    found: dict[TopicPartition, int | None] = {}
    for number, row in rows:
        here = f"{where}, row {number}"
        place, offset = _place(row, here), _offset(row.get("offset"), here)
        if place in found:
            raise ConfigError(here, [f"{place} was there before; expected one row for each partition"])
        found[place] = offset
    if not found:
        raise ConfigError(where, ["holds no position"])
    return found


def as_csv(positions: Iterable[Position]) -> str:
    """Return the positions as CSV with headings."""
    head = ("topic", "partition", "offset", "destination", "destination_offset", "fit")
    return _csv([head, *([_cell(getattr(item, name)) for name in head] for item in positions)])


def as_json(link: str, positions: Iterable[Position]) -> dict[str, Any]:
    """Return all fields of the positions, for JSON."""
    return {"link": link, "partitions": [asdict(item) for item in positions]}


def as_mirus_csv(connector: str, positions: Iterable[Position]) -> str:
    """Return known positions as `mirus-offset-tool.sh --describe` prints them: connectorId, topic, partition, offset,
    without headings."""
    known = (item for item in positions if item.offset is not None)
    return _csv((connector, item.topic, str(item.partition), str(item.offset)) for item in known)


def as_mirus_json(connector: str, positions: Iterable[Position]) -> str:
    """Return known positions as lines of JSON with the same four keys."""
    known = (item for item in positions if item.offset is not None)
    lines = (dict(zip(_MIRUS_COLUMNS, (connector, *item.place, item.offset), strict=True)) for item in known)
    return "".join(_compact(line) + "\n" for line in lines)


def connect_record(connector: str, cluster: str | None, place: TopicPartition, position: int) -> tuple[bytes, bytes]:
    """Return the key and value of a connector's stored position, which must be at least 1 for MirrorMaker 2.

    Args:
        cluster: the source's alias in MirrorMaker 2; None: Mirus, which has none.
    """
    of_cluster = {} if cluster is None else {"cluster": cluster}
    key = [connector, {**of_cluster, "partition": place.partition, "topic": place.topic}]
    return _compact(key).encode(), _compact({"offset": position - (cluster is not None)}).encode()


def read_connect(raw_key: bytes | None, raw_value: bytes | None) -> ConnectOffset | None:
    """Return a copied partition's position from a record of an offsets topic; None if the record is of another kind."""
    try:
        connector, of_partition = value_of(raw_key or b"")
        value = value_of(raw_value) if raw_value else None
        if set(of_partition) not in _OF_CONNECT:
            return None
        place = TopicPartition(str(of_partition["topic"]), int(of_partition["partition"]))
        cluster = of_partition.get("cluster")
        stored = None if value is None else value.get("offset")
        position = None if stored is None else int(stored) + (cluster is not None)
    except (ValueError, TypeError, AttributeError):
        return None
    return ConnectOffset(str(connector), cluster, place, position)


def of_connector(
    entries: Iterable[ConnectOffset], topic: str, connector: str | None, cluster: str | None
) -> dict[TopicPartition, int | None]:
    """Return the positions of one connector and one source cluster; empty if no position is stored at all.

    Raises:
        ConfigError: several connectors or clusters match, or none does.
    """
    entries = list(entries)
    if not entries:
        return {}
    fit = [entry for entry in entries if connector in (None, entry.connector) and cluster in (None, entry.cluster)]
    writers = sorted({(entry.connector, entry.cluster or "") for entry in fit})
    if len(writers) != 1:
        listed = "; ".join(f"--connector {name}" + (f" --cluster {of}" if of else "") for name, of in writers)
        problem = f"holds positions of several connectors: {listed}" if writers else "holds no position of a connector"
        raise ConfigError(f"topic {topic}", [problem], hint="name one" if writers else "")
    return {entry.place: entry.position for entry in fit}


def _json_rows(text: str, where: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        loaded = value_of(text)
    except ValueError:
        loaded = _json_lines(text, where)
    rows = loaded.get("partitions", [loaded]) if isinstance(loaded, dict) else loaded
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise ConfigError(f"{where}, row {number}", ["expected an object with topic, partition and offset"])
        yield number, row


def _json_lines(text: str, where: str) -> list[Any]:
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return [value_of(line) for line in lines]
    except ValueError as error:
        raise ConfigError(where, [f"is neither JSON nor lines of JSON: {error}"]) from None


def _csv_rows(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    rows = [(number, row) for number, row in enumerate(csv.reader(io.StringIO(text)), 1) if any(row)]
    head: tuple[str, ...] | None = None
    if rows and "topic" in rows[0][1]:
        head = tuple(cell.strip() for cell in rows.pop(0)[1])
    for number, row in rows:
        columns = head or (_MIRUS_COLUMNS if len(row) == len(_MIRUS_COLUMNS) else _COLUMNS)
        yield number, dict(zip(columns, (cell.strip() for cell in row), strict=False))


def _place(row: Mapping[str, Any], where: str) -> TopicPartition:
    topic, partition = row.get("topic"), row.get("partition")
    number = _number(partition)
    if not isinstance(topic, str) or not topic or number is None:
        raise ConfigError(where, [f"names no partition: topic {topic!r}, partition {partition!r}"])
    return TopicPartition(topic, number)


def _offset(value: Any, where: str) -> int | None:
    if value is None or value == "":
        return None
    number = _number(value)
    if number is None:
        raise ConfigError(where, [f"offset {value!r} is not a number from 0 on"])
    return number


def _number(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    text = str(value) if is_number or isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdigit() else None


def _csv(rows: Iterable[Iterable[str]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


_compact: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
