"""A look-up that was lost on its way is made again at once, over the next connection: that is dialled with pauses of its own."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from strait.engine import codes
from strait.engine.cluster import Cluster
from strait.engine.finder import Finder
from strait.engine.loop import Loop
from strait.engine.partition import Partition
from strait.model import topic_id_text
from strait.reasons import Reason
from support.partitions import plain_partition
from support.reports import plain_run


class Dying:
    """The destination, and its only channel."""

    def prompt_channel(self, _: int) -> "Dying":
        return self

    def version(self, _: int, versions: tuple[int, int]) -> int:
        return versions[1]

    def ask(self, _request: Any, _reply: Any, *, on_reply: Any, on_lost: Callable[[str], None]) -> None:
        on_lost("no reply in time")

    def refresh(self) -> None: ...


def test_a_look_up_that_was_lost_is_made_again_at_once() -> None:
    doubts: list[tuple[Reason | None, str, tuple[float, float]]] = []

    def doubt(_: Partition, reason: Reason | None, detail: str, wait_seconds: tuple[float, float]) -> None:
        doubts.append((reason, detail, wait_seconds))

    loop, dying, partition = Loop(), Dying(), plain_partition()
    run = plain_run(
        destination=partition.destination,
        source_id=topic_id_text(partition.source_id),
        destination_id=topic_id_text(partition.destination_id),
    )
    finder = Finder(
        loop,
        cast(Cluster, dying),
        cast(Cluster, dying),
        1,
        SimpleNamespace(runs={(partition.topic, partition.number): (run,)}, map_end=0),
        "map",
        problem=lambda _: None,
        doubt=doubt,
        placed=lambda *_: None,
    )
    partition.destination_node = 1
    finder.add(partition)
    finder.step()
    loop.close()
    detail = "looking up the position: no reply in time"
    assert doubts == [(Reason.DESTINATION_UNREACHABLE, detail, codes.SOON_SECONDS)]
