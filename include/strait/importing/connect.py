"""Properties that Mirus and MirrorMaker 2 have in common: both run in Kafka Connect. Pure."""

from strait.importing.draft import Flow, Given, Weight
from strait.importing.naming import take_transform
from strait.importing.table import Row, Take, needless, no, row

_MOST_SLOTS = 1024


_OF_READER = ("auto.offset.reset", "isolation.level", "client.rack", "interceptor.classes")
_OF_WRITER = ("compression.type", "interceptor.classes")
_OF_NEITHER = "needless: only the client that reads or writes the records uses it"


def client_of(end: str, *, reads: bool = False, writes: bool = False) -> Take:
    """Return a function that stores a property of the clients of one end.

    Args:
        reads: whether the tool gives the property to the consumer of the source's records. Other clients' start offset
            and isolation level have no effect.
        writes: whether the tool gives the property to the producer of the destination's records.
    """
    used = (_OF_READER if reads else ()) + (_OF_WRITER if writes else ())

    def take(flow: Flow, given: Given) -> None:
        if given.name in {*_OF_READER, *_OF_WRITER} - {*used}:
            flow.leave(given, _OF_NEITHER, Weight.NEEDLESS)
        else:
            flow.client(end, given.name, given)

    return take


def read(flow: Flow, given: Given) -> None:
    """Do nothing: the property only determines how others are read, or has no further meaning."""


def _tasks(flow: Flow, given: Given) -> None:
    if given.value.isdecimal() and int(given.value) >= 1:
        flow.put(
            min(int(given.value), _MOST_SLOTS),
            *("groups", "default", "max_slots"),
            note="One slot copies what many tasks do, and needs a core; others are added as the load asks for them.",
        )
    else:
        flow.leave(given, "is not a number from 1 on")


CONNECT_ROWS: tuple[Row, ...] = (
    row("tasks.max", ours="`groups.default.max_slots`", take=_tasks),
    row("connector.class", ours="read: it says what the rest means", take=read),
    row(
        *("transforms", "transforms.*"),
        ours="`naming` with policy `rules` for one RegexRouter; – no other: write a `transform`",
        take=take_transform,
    ),
    no("predicates", "predicates.*", why="write the condition as `where` of a `transform`", weight=Weight.FIRST),
    no(
        "errors.*", why="a record that the destination refuses can be quarantined: a rule with `on_refused: quarantine`"
    ),
    no("topic.creation.*", why="say by `configs.overrides` what copies have whatever their sources have"),
    needless(
        *("key.converter", "key.converter.*", "value.converter", "value.converter.*"),
        *("header.converter", "header.converter.*", "internal.key.converter", "internal.value.converter"),
        *("internal.key.converter.*", "internal.value.converter.*"),
        why="records are copied as they are",
    ),
    needless(
        *("exactly.once.*", "exactly.once.source.support", "transaction.*", "offsets.storage.topic"),
        why="each record is copied once, without transactions",
    ),
    needless(
        *("group.id", "offset.storage.*", "status.storage.*", "config.storage.*", "offset.flush.*", "plugin.*"),
        *("rest.*", "listeners", "listeners.*", "admin.listeners", "heartbeat.interval.ms", "session.timeout.ms"),
        *("rebalance.timeout.ms", "connector.client.config.override.policy", "worker.*", "scheduled.rebalance.*"),
        why="Kafka Connect's own; Strait's state is in topics on the destination",
    ),
    needless(*("metric.reporters", "metrics.*", "auto.include.jmx.reporter"), why="figures are in reports and gauges"),
)
"""Rows for the end of a tool's table."""
