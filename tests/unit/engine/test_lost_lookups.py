"""A look-up that was lost on its way is made again at once, over the next connection: that is dialled with pauses of
its own."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from strait.engine.partition.position import Phase
from strait.engine.recovery.coordinator import RecoveryCoordinator
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.reasons import Reason
from support.model.one_broker import OneBroker
from support.model.partitions import plain_partition
from support.model.reports import plain_run


class Answering(OneBroker):
    """The destination, and its only channel: loses everything if it has no ``error`` to answer with.

    ``omits``: it answers without a word about the partition.
    """

    topic_errors: Mapping[str, int] = {}
    partition_counts: Mapping[str, int] = {}
    topic_ids: Mapping[str, bytes] = {}

    def __init__(self, error: int = 0, *, omits: bool = False) -> None:
        self._error = error
        self._omits = omits

    def prompt_channel(self, _: int) -> "Answering":
        return self

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

    def refresh(self, _: object = None) -> None: ...


def after_a_look_up(destination: Answering) -> tuple[Reason | None, str, float]:
    """Why one partition is looked up again, and after how many seconds."""
    partition = plain_partition()
    partition.queue.route(1)
    source_id, destination_id = partition.ids
    run = plain_run(destination=partition.destination, source_id=source_id, destination_id=destination_id)
    loop = Loop()
    coordinator = RecoveryCoordinator(
        loop,
        cast(ClusterClient, destination),
        cast(ClusterClient, destination),
        1,
        SimpleNamespace(runs={(partition.topic, partition.number): (run,)}, map_end=0),
        "map",
        cast(Any, None),
        cast(Any, None),
        schedule=cast(Any, None),
    )
    coordinator.add(partition)
    coordinator.step()
    for _ in range(10):
        loop.run_once(0.0)
    wait = partition.position.retry_at - loop.now
    loop.close()
    assert partition.position.phase is Phase.AWAIT_POSITION
    return partition.reason, partition.detail, wait


def test_a_look_up_that_was_lost_is_made_again_at_once() -> None:
    detail = "looking up the position: no reply in time"
    reason, said, wait = after_a_look_up(Answering())
    assert (reason, said) == (Reason.DESTINATION_UNREACHABLE, detail)
    assert wait <= error_policy.SOON_SECONDS[1]


def test_one_that_was_refused_is_not() -> None:
    """Else it would be asked several times a second for as long as it is forbidden."""
    reason, detail, wait = after_a_look_up(Answering(error=29))
    assert reason is Reason.DESTINATION_DENIED
    assert error_policy.SOON_SECONDS[1] < wait <= error_policy.SHORTLY_SECONDS[1]
    assert detail == f"looking up its log end: {error_policy.name(29)}"


def test_an_answer_that_omits_the_partition_is_none() -> None:
    """It would wait for ever, and nobody would be told."""
    reason, detail, _ = after_a_look_up(Answering(omits=True))
    assert reason == Reason.DESTINATION_UNREACHABLE
    assert detail == f"looking up its log end: {error_policy.name(error_policy.NOT_ANSWERED)}"
