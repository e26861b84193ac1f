"""A look-up that was lost on its way is made again at once, over the next connection: that is dialled with pauses of its own."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from strait.engine import codes, recovery
from strait.engine.cluster import Cluster, Leader
from strait.engine.finder import Finder, _Standing
from strait.engine.loop import Loop
from strait.engine.partition import Phase
from strait.model import topic_id_text
from strait.reasons import Reason
from support.partitions import plain_partition
from support.reports import plain_run


class Answering:
    """The destination, and its only channel: loses everything where it has no ``error`` to answer with."""

    def __init__(self, error: int = 0) -> None:
        self._error = error

    def prompt_channel(self, _: int) -> "Answering":
        return self

    def leader(self, _topic: str, _partition: int) -> Leader:
        return Leader(1, 0)

    def version(self, _: int, versions: tuple[int, int]) -> int:
        return versions[1]

    def ask(
        self, _request: Any, _reply: Any, *, on_reply: Callable[[Any], None], on_lost: Callable[[str], None]
    ) -> None:
        if not self._error:
            on_lost("no reply in time")
            return
        end = SimpleNamespace(partition_index=0, error_code=self._error, offset=-1)
        on_reply(SimpleNamespace(topics=[SimpleNamespace(name="map", partitions=[end])]))

    def refresh(self) -> None: ...


class Looking:
    """A finder, one partition, and how it came to be doubted."""

    def __init__(self, destination: Answering) -> None:
        self.doubts: list[tuple[Reason | None, str, tuple[float, float]]] = []
        self.partition = plain_partition()
        self.partition.destination_node = 1
        run = plain_run(
            destination=self.partition.destination,
            source_id=topic_id_text(self.partition.source_id),
            destination_id=topic_id_text(self.partition.destination_id),
        )
        self.loop = Loop()
        self.finder = Finder(
            self.loop,
            cast(Cluster, destination),
            cast(Cluster, destination),
            1,
            SimpleNamespace(runs={(self.partition.topic, self.partition.number): (run,)}, map_end=0),
            "map",
            problem=lambda _: None,
            doubt=lambda _, *doubt: self.doubts.append(doubt),
            placed=lambda *_: None,
        )

    def step(self) -> list[tuple[Reason | None, str, tuple[float, float]]]:
        self.finder.step()
        self.loop.close()
        return self.doubts


def test_a_look_up_that_was_lost_is_made_again_at_once() -> None:
    looking = Looking(Answering())
    looking.finder.add(looking.partition)
    detail = "looking up the position: no reply in time"
    assert looking.step() == [(Reason.DESTINATION_UNREACHABLE, detail, codes.SOON_SECONDS)]


def test_one_that_was_refused_is_not() -> None:
    """Else it would be asked several times a second for as long as it is forbidden."""
    looking = Looking(Answering(error=29))
    looking.partition.phase = Phase.LOOKING
    found = recovery.Found(0, None)
    looking.finder._standing.append(_Standing(looking.partition, looking.partition.generation, found))
    ((reason, detail, wait_seconds),) = looking.step()
    assert (reason, wait_seconds) == (Reason.DESTINATION_DENIED, codes.SHORTLY_SECONDS)
    assert detail == f"looking up the end of map: {codes.name(29)}"
