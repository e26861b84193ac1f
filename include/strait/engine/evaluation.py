"""Evaluation of the expressions of transformed topics, from the engine's view: batches are submitted, and the batches of
transformed records are returned later.

`strait.engine.detour` implements it, beside Spark. A result depends on the submitted records alone, regardless of any
other events meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.state.transform import TopicTransform
from strait.wire.batch import Batch
from strait.wire.shapes import Stretch

Offsets = np.ndarray[Any, np.dtype[np.int64]]


class Work(NamedTuple):
    """Records to transform.

    Attributes:
        topic, partition: of the source.
        batches: of magic 2, with consecutive offset deltas; their memory stays valid until the result is there.
        stretches: the source offsets of their records, in order.
        codec: of the batches to make. ``most_bytes``: the largest to make, unless it is one record.
    """

    topic: str
    partition: int
    transform: TopicTransform
    batches: Sequence[Batch]
    stretches: Sequence[Stretch]
    codec: int
    most_bytes: int


class MadeBatch(NamedTuple):
    """A batch of transformed records, and the source offset of each."""

    data: bytearray
    offsets: Offsets


class Malformed(NamedTuple):
    """A record whose value cannot be parsed. ``unknown``: if its schema is not known, the reason; the partition then stops
    regardless of the rule's `malformed`, since the rule lacks something rather than the record. ``kept``: it can be parsed and
    the rule keeps it, but the schema does not permit its new value."""

    offset: int
    unknown: str = ""
    kept: bool = False


class Refusal(NamedTuple):
    """The work cannot be done, and why."""

    reason: Reason
    detail: str


Made = Sequence[MadeBatch | Malformed] | Refusal
"""Result for all records, in the order of their offsets; it does not contain records that are filtered out."""


class Evaluator(Protocol):
    def submit(self, work: Work, done: Callable[[Made], None]) -> None:
        """Request the transformation of records. ``done`` is called once, later, on the engine's loop; never if the evaluator
        ends before."""
        ...


class Evaluators(Protocol):
    """The evaluation for the slots of one task."""

    def of(self, loop: Loop) -> Evaluator:
        """Return the evaluator for a slot on this loop."""
        ...

    def serves(self, transforms: frozenset[int]) -> bool:
        """Return whether exactly these transformations can be evaluated; if not, the task must be restarted."""
        ...


class _Nothing:
    """The evaluation of a task without transformed topics, which is restarted when the plan has one."""

    def of(self, loop: Loop) -> Evaluator:
        return self

    def submit(self, work: Work, done: Callable[[Made], None]) -> None:
        raise ValueError(f"topic {work.topic} is not transformed here")

    def serves(self, transforms: frozenset[int]) -> bool:
        return not transforms


NOTHING: Evaluators = _Nothing()
