"""What `strait run --pool` asks of its launcher: one submission, then updates, whatever becomes of single links."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from strait.cli import pool_foreground
from strait.cli.options import Output
from strait.cli.pool_foreground import PoolForeground
from strait.config.app_spec import AppSpec, PoolSpec, read_spec
from strait.config.links import LinksFile, parse
from strait.control.outcome import Outcome
from strait.errors import ClusterUnavailable
from strait.launch.base import Application, State
from strait.model import TopicPartition
from strait.state.schema import Plan

STANDBY = "strait-pool-main.standby"
CLUSTERS = {"bootstrap.servers": "a:1"}


class Launcher:
    """Runs what is submitted, until it is told that it died."""

    def __init__(self) -> None:
        self.specs: list[PoolSpec] = []
        self.did: list[str] = []
        self.found: Application | None = None
        self.standbys: list[PoolSpec] = []
        self.standby: Application | None = None
        self.passes_on_specs = True

    def submit(self, name: str, spec_path: Path, _: Any) -> Application:
        spec = read_spec(spec_path)
        assert isinstance(spec, PoolSpec)
        if spec.standby:
            self.standbys.append(spec)
            self.standby = Application(name, "s", State.RUNNING, "log", 0)
            return self.standby
        self.did.append("submit")
        self.specs.append(spec)
        self.found = Application(name, str(len(self.did)), State.RUNNING, "log", 0)
        return self.found

    def update(self, _: Application, spec: PoolSpec) -> bool:
        if not self.passes_on_specs:
            return False
        if spec.standby:
            self.standbys.append(spec)
            return True
        self.did.append("update")
        self.specs.append(spec)
        return True

    def state(self, name: str) -> Application | None:
        return self.standby if name == STANDBY else self.found

    def stop(self, name: str, *, grace_seconds: float = 1.0) -> None:
        if name == STANDBY:
            self.standby = None
            return
        self.did.append("stop")
        self.ends()

    def cause(self, _: Application) -> str:
        return "killed"

    def ends(self) -> None:
        self.found = Application("strait-pool-main", "1", State.DEAD, "log", 0, 137)


class Cycles:
    """A link's control cycles, with the results that the test gives."""

    of: ClassVar[dict[str, "Cycles"]] = {}

    def __init__(self, _: LinksFile, link: str, *__: Any, **___: Any) -> None:
        self.results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        Cycles.of[link] = self

    def start(self) -> None: ...

    def stop(self, _: float) -> None: ...

    def plans(self, link: str, *, stopped: bool = False) -> None:
        plan = Plan(
            link=link, group="default", version=1, producer_id=1, slots=1, topics=(), published_at_ms=1, stopped=stopped
        )
        proposal: Any = SimpleNamespace(drafts={})
        outcome = Outcome((), {}, {"default": plan}, proposal)
        self.results.put(outcome)


class Control:
    """Makes specs, and knows no status."""

    def __init__(self, file: LinksFile, link: str) -> None:
        self._file, self._link = file, link

    def spec(self, plan: Plan, *, ledger_dir: Path, checkpoint_dir: Path) -> AppSpec:
        return AppSpec(
            link=self._link, group=plan.group, source_name="a", source=CLUSTERS, destination_name="b",
            destination=CLUSTERS, slots=plan.slots, slot_memory_bytes=1 << 20, ledger_seconds=60,
            ledger_dir=str(ledger_dir), checkpoint_dir=str(checkpoint_dir),
        )  # fmt: skip

    def statuses(self) -> tuple[Any, ...]:
        return ()

    def written(self) -> dict[Any, int]:
        return {TopicPartition(self._link, 0): 1000}


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Launcher:
    one = Launcher()
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path))
    monkeypatch.setattr(pool_foreground, "launcher_for", lambda *_, **__: one)
    monkeypatch.setattr(pool_foreground, "Cycles", Cycles)
    monkeypatch.setattr(pool_foreground, "Control", Control)
    monkeypatch.setattr(pool_foreground, "plans_in_force", lambda *_: {})
    monkeypatch.setattr(Outcome, "as_text", lambda _: "planned")
    monkeypatch.setattr(Outcome, "created", ())
    return one


@pytest.fixture
def pool(launcher: Launcher, tmp_path: Path) -> PoolForeground:
    return made(tmp_path)


def made(folder: Path, **settings: Any) -> PoolForeground:
    link = {"source": "a", "destination": "b", "pool": "main"}
    raw = {
        "clusters": {"a": CLUSTERS, "b": CLUSTERS},
        "pools": {"main": {"slots": 1} | settings},
        "links": dict.fromkeys(("one", "two"), link),
    }
    file = parse(raw, where="test")
    return PoolForeground(file, "main", folder, Output.TABLE, threading.Event())


def look(pool: PoolForeground) -> None:
    with ThreadPoolExecutor(1) as queries:
        for _ in range(2):
            for member in pool._members:
                member.look(queries)
            queries.submit(lambda: None).result()
    pool._keep_running()


def links(launcher: Launcher) -> list[str]:
    return list(launcher.specs[-1].links)


def test_links_join_as_they_are_planned_and_stop_without_another_submission(
    pool: PoolForeground, launcher: Launcher
) -> None:
    for member in pool._members:
        member.begin(30.0, start=False)
    look(pool)
    assert launcher.did == []
    Cycles.of["one"].plans("one")
    look(pool)
    assert (launcher.did, links(launcher)) == (["submit"], ["one"])
    look(pool)
    assert launcher.did == ["submit"], "nothing has changed"
    Cycles.of["two"].plans("two")
    look(pool)
    look(pool)
    assert (launcher.did, links(launcher)) == (["submit", "update"], ["one", "two"])
    Cycles.of["one"].plans("one", stopped=True)
    look(pool)
    assert (launcher.did, links(launcher)) == (["submit", "update", "update"], ["two"])


def test_a_link_that_cannot_be_planned_stops_no_other(
    pool: PoolForeground, launcher: Launcher, capsys: pytest.CaptureFixture[str]
) -> None:
    for member in pool._members:
        member.begin(30.0, start=False)
    for _ in range(2):
        Cycles.of["one"].results.put(ClusterUnavailable("a", "timed out"))
    Cycles.of["two"].plans("two")
    look(pool)
    assert links(launcher) == ["two"]
    said = capsys.readouterr().out
    assert said.count("one: error: cluster a: timed out") == 1


def test_an_application_that_dies_is_submitted_again_with_what_it_ran(
    pool: PoolForeground, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strait.cli.kept_application._RESTART_SECONDS", (0.0,) * 4)
    for member in pool._members:
        member.begin(30.0, start=False)
    Cycles.of["one"].plans("one")
    look(pool)
    launcher.ends()
    look(pool)
    assert launcher.did == ["submit", "submit"]
    assert links(launcher) == ["one"]
    look(pool)
    assert launcher.did == ["submit", "submit"]


def test_a_link_that_joins_while_the_cluster_does_not_respond_joins_afterwards(
    pool: PoolForeground, launcher: Launcher
) -> None:
    for member in pool._members:
        member.begin(30.0, start=False)
    Cycles.of["one"].plans("one")
    look(pool)
    runs = launcher.found
    launcher.found = Application("strait-pool-main", "", State.UNKNOWN, "", 0)
    Cycles.of["two"].plans("two")
    look(pool)
    assert launcher.did == ["submit"]
    launcher.found = runs
    look(pool)
    assert (launcher.did, links(launcher)) == (["submit", "update"], ["one", "two"])


def test_a_link_that_cannot_be_planned_copies_by_its_former_plan(
    pool: PoolForeground, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = Plan(link="one", group="default", version=3, producer_id=1, slots=2, topics=(), published_at_ms=1)
    monkeypatch.setattr(pool_foreground, "plans_in_force", lambda *_: {"default": former})
    for member in pool._members:
        member.begin(30.0, start=False)
    Cycles.of["one"].results.put(ClusterUnavailable("a", "timed out"))
    look(pool)
    assert links(launcher) == ["one"]
    assert [placed.slot for placed in launcher.specs[-1].placement] == [0, 1]


def test_a_standby_hosts_what_the_application_does_and_waits_with_its_restart(
    launcher: Launcher, tmp_path: Path
) -> None:
    pool = made(tmp_path, standby=True)
    for member in pool._members:
        member.begin(30.0, start=False)
    Cycles.of["one"].plans("one")
    look(pool)
    first, waiting = launcher.specs[-1], launcher.standbys[-1]
    assert (waiting.placement, list(waiting.links)) == (first.placement, ["one"])
    assert waiting.standby and all(member.standby for member in waiting.members)
    assert not first.standby and not any(member.standby for member in first.members)
    assert waiting.checkpoint_dir != first.checkpoint_dir
    Cycles.of["two"].plans("two")
    look(pool)
    assert list(launcher.standbys[-1].links) == ["one", "two"]

    pool._pool = pool._pool.model_copy(update={"slots": 2})
    look(pool)
    assert launcher.did[-1] == "stop"
    assert launcher.standby is not None, "it may be copying now"
    look(pool)
    look(pool)
    assert launcher.did[-1] == "submit"
    look(pool)
    assert launcher.standbys[-1].slots == 2
    pool._end_applications()
    assert launcher.standby is None


def test_a_standby_is_not_replaced_together_with_the_application_whose_links_change(
    launcher: Launcher, tmp_path: Path
) -> None:
    """A cluster that cannot pass specs on runs another application for each change."""
    launcher.passes_on_specs = False
    pool = made(tmp_path, standby=True)
    for member in pool._members:
        member.begin(30.0, start=False)
    Cycles.of["one"].plans("one")
    look(pool)
    Cycles.of["two"].plans("two")
    look(pool)
    assert launcher.did == ["submit", "stop"]
    assert launcher.standby is not None, "it may be copying now"
    look(pool)
    look(pool)
    assert (launcher.did, links(launcher)) == (["submit", "stop", "submit"], ["one", "two"])
    look(pool)
    assert list(launcher.standbys[-1].links) == ["one", "two"]
    assert len(launcher.standbys) == 2


def test_a_link_counts_what_is_copied_since_it_runs_here(
    pool: PoolForeground, launcher: Launcher, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [ClusterUnavailable("b", "timed out")]
    right = Control.written

    def written(control: Control) -> dict[Any, int]:
        if fails:
            raise fails.pop()
        return right(control)

    monkeypatch.setattr(Control, "written", written)
    one = pool._members[0]
    one.begin(30.0, start=False)
    pool._members[1].begin(30.0, start=False)
    Cycles.of["one"].plans("one")
    row = SimpleNamespace(topic="one", partition=0, written=1030, lag_records=0, reason="", detail="")
    group = SimpleNamespace(
        group="default",
        stopped=False,
        partitions=(row,),
        waiting=(),
        slots=(),
        records_per_second=0.0,
        bytes_per_second=0.0,
    )
    monkeypatch.setattr(Control, "statuses", lambda _: (group,))
    with ThreadPoolExecutor(1) as queries:
        for _ in range(6):
            one.look(queries)
            one.show(queries)
            queries.submit(lambda: None).result()
    said = capsys.readouterr().out
    assert "one: error: cluster b: timed out" in said
    assert "one: 30 records copied" in said
    assert "1,030 records copied" not in said, "nothing is counted before it is known from where"
