"""Two clusters with a link each way: what the idle direction reads of the traffic of the other cluster, into which
nothing of its own is copied."""

import time
from pathlib import Path

from endurance.backlog import fill
from endurance.brokers import watched
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes
from support.links.far import FarCluster, running

_MOST_MB = 1.0
_TOPIC = "orders"


def idle_direction(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """The link copies from an idle cluster to the busy one, whose own producers write into the same topics."""
    idle, busy = FarCluster(folder / "idle"), FarCluster(folder / "busy")
    topics = {_TOPIC: sizes.partitions}
    with running(idle, busy), watched(idle, busy):
        rules = {"topics": {"include": [_TOPIC], "rules": [{"match": ".*", "on_foreign": "expect"}]}}
        link = RigLink("back", idle, busy, folder, topics, more=rules)
        link.begin()
        slot = link.run_slot()
        try:
            link.seconds_until(time.monotonic(), lambda row: row.state == "caught_up")
            before = _received(idle, busy)
            fill(busy, [(_TOPIC, number) for number in range(sizes.partitions)], sizes.megabytes, sizes.seed)
            time.sleep(sizes.seconds)
            while_busy = _received(idle, busy) - before
            say(f"{sizes.megabytes} MB written; the idle direction received {while_busy:.2f} MB")
            slot.kill()
            before = _received(idle, busy)
            link.run_slot()
            link.seconds_until(time.monotonic(), lambda row: row.state == "caught_up")
            after_kill = _received(idle, busy) - before
        finally:
            link.stop()
    return [
        Finding("written by others into the busy cluster", sizes.megabytes, "MB"),
        Finding("received by the idle direction meanwhile", while_busy, "MB", _MOST_MB),
        Finding("received by the idle direction after kill -9", after_kill, "MB", _MOST_MB),
    ]


def _received(*clusters: FarCluster) -> float:
    """Megabytes of replies to the slot's engine."""
    return sum(cluster.proxy.passed("reply").bytes for cluster in clusters) / 1e6
