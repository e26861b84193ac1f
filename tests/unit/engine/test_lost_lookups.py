"""A look-up that was lost on its way is made again at once, over the next connection: that is dialled with pauses of
its own."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from strait.engine.recovery.coordinator import RecoveryCoordinator
from strait.model import topic_id_text
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient, Leader
from strait.net.event_loop import Loop
from strait.reasons import Reason
from support.model.partitions import plain_partition
from support.model.reports import plain_run

Doubts = list[tuple[Reason | None, str, tuple[float, float]]]


class Answering:
    """The destination, and its only channel: loses everything if it has no ``error`` to answer with.

    ``omits``: it answers without a word about the partition.
    """

    def __init__(self, error: int = 0, *, omits: bool = False) -> None:
        self._error = error
        self._omits = omits

    def prompt_channel(self, _: int) -> "Answering":
        return self

    def leader(self, _topic: str, _partition: int) -> Leader:
        return Leader(1, 0)

    def version(self, _: int, versions: tuple[int, int]) -> int:
        return versions[1]

    def served(self, _: int) -> tuple[int, int]:
        return 0, -1

    def ask(
        self, request: Any, _reply: Any, *, on_reply: Callable[[Any], None], on_lost: Callable[[str], None]
    ) -> None:
        if self._omits:
            on_reply(SimpleNamespace(topics=[]))
            return
        if not self._error:
            on_lost("no reply in time")
            return
        answer = {"error_code": self._error, "offset": -1, "end_offset": -1}
        topics = [
            SimpleNamespace(
                name=getattr(topic, "name", None),
                topic=getattr(topic, "topic", None),
                partitions=[SimpleNamespace(partition_index=0, partition=0, **answer)],
            )
            for topic in request.topics
        ]
        on_reply(SimpleNamespace(topics=topics))

    def refresh(self) -> None: ...


def doubts_after_a_look_up(destination: Answering) -> Doubts:
    """How one partition came to be looked up again."""
    doubts: Doubts = []
    partition = plain_partition()
    partition.destination_node = 1
    run = plain_run(
        destination=partition.destination,
        source_id=topic_id_text(partition.source_id),
        destination_id=topic_id_text(partition.destination_id),
    )
    loop = Loop()
    coordinator = RecoveryCoordinator(
        loop,
        cast(ClusterClient, destination),
        cast(ClusterClient, destination),
        1,
        SimpleNamespace(runs={(partition.topic, partition.number): (run,)}, map_end=0),
        "map",
        cast(Any, None),
        problem=lambda _: None,
        reset_position=lambda _, *reset_position: doubts.append(reset_position),
        placed=lambda *_: None,
    )
    coordinator.add(partition)
    coordinator.step()
    for _ in range(10):
        loop.run_once(0.0)
    loop.close()
    return doubts


def test_a_look_up_that_was_lost_is_made_again_at_once() -> None:
    detail = "looking up the position: no reply in time"
    assert doubts_after_a_look_up(Answering()) == [(Reason.DESTINATION_UNREACHABLE, detail, error_policy.SOON_SECONDS)]


def test_one_that_was_refused_is_not() -> None:
    """Else it would be asked several times a second for as long as it is forbidden."""
    ((reason, detail, wait_seconds),) = doubts_after_a_look_up(Answering(error=29))
    assert (reason, wait_seconds) == (Reason.DESTINATION_DENIED, error_policy.SHORTLY_SECONDS)
    assert detail == f"looking up its log end: {error_policy.name(29)}"


def test_an_answer_that_omits_the_partition_is_none() -> None:
    """It would wait for ever, and nobody would be told."""
    ((reason, detail, _),) = doubts_after_a_look_up(Answering(omits=True))
    assert reason == Reason.DESTINATION_UNREACHABLE
    assert detail == f"looking up its log end: {error_policy.name(error_policy.NOT_ANSWERED)}"
