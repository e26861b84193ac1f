"""One partition's turn at recovery, and how it may end without a position."""

from typing import NamedTuple

from strait.engine.partition import Partition, Phase
from strait.engine.recovery.producer_state import Refusal
from strait.net import error_policy
from strait.net.channel import Channel
from strait.reasons import Reason


class Superseded(Exception):
    """The partition's position was reset again, or the plan gave it away."""


class Unresolved(Exception):
    """The position could not be found out this time."""

    def __init__(
        self, reason: Reason, detail: str, wait_seconds: tuple[float, float], *, refresh: bool = False
    ) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.wait_seconds, self.refresh = reason, detail, wait_seconds, refresh

    @classmethod
    def of(cls, answer: error_policy.Answer, detail: str) -> "Unresolved":
        return cls(answer.reason, detail, answer.wait_seconds, refresh=True)

    @classmethod
    def refused(cls, refusal: Refusal) -> "Unresolved":
        answer = error_policy.answer(error_policy.PRODUCE, refusal.code, Reason.DESTINATION_UNREACHABLE)
        return cls.of(answer, f"looking up {refusal.what}: {error_policy.name(refusal.code)}")

    @classmethod
    def until_decided(cls, reason: Reason, detail: str) -> "Unresolved":
        """Somebody has to change something; it is looked at again now and then."""
        return cls(reason, detail, error_policy.wait_for(reason))


class Ticket(NamedTuple):
    """Whoever has waited on the partition's behalf checks that the ticket is current.

    Attributes:
        running: the partition is being copied meanwhile.
    """

    partition: Partition
    generation: int
    channel: Channel
    running: bool = False

    @property
    def is_current(self) -> bool:
        partition = self.partition
        looking = self.running or partition.phase is Phase.RESOLVING
        return looking and partition.generation == self.generation and not partition.retired

    def check(self) -> None:
        if not self.is_current:
            raise Superseded
