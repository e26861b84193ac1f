"""The application of a pool that runs but does not report: it is restarted once none of its slots reports."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from strait.config.app_spec import AppSpec, PoolSpec
from strait.config.links import LinksFile, load
from strait.errors import ClusterUnavailable
from strait.launch.base import Application, State
from strait.state.report_records import Report
from strait.state.schema import Plan
from strait_airflow import applications, pools, submitting
from strait_airflow.steps import Run, Steps

ADDRESS = {"bootstrap.servers": "a:1"}
NAME = "strait-pool-main"
SILENT_AT_MS = 1_000_000


class Launcher:
    """Runs the pool, submitted long ago."""

    passes_on_specs = True

    def __init__(self, spec: PoolSpec) -> None:
        self.spec_ = spec
        self.state_ = Application(NAME, "1", State.RUNNING, "log", 1)
        self.did: list[str] = []

    def submit(self, name: str, *_: Any) -> Application:
        self.did.append("submit")
        self.state_ = Application(name, "2", State.RUNNING, "log", SILENT_AT_MS + 1)
        return self.state_

    def state(self, name: str) -> Application | None:
        return self.state_ if name == NAME else None

    def spec(self, _: Application) -> PoolSpec:
        return self.spec_

    def history(self, _: str) -> tuple[Application, ...]:
        return ()

    def cause(self, _: Application) -> str:
        return "stopped"

    def stop(self, name: str) -> None:
        self.did.append("stop")
        self.state_ = Application(name, "1", State.FINISHED, "log", 1, 0)

    def list(self) -> tuple[Application, ...]:
        return ()


def app_spec(link: str) -> AppSpec:
    return AppSpec(
        link=link, group="default", source_name="a", source=ADDRESS, destination_name="b", destination=ADDRESS,
        slots=1, slot_memory_bytes=1, ledger_seconds=60, ledger_dir="/l", checkpoint_dir="/c",
    )  # fmt: skip


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> LinksFile:
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(tmp_path / "links.yaml"))
    raw = {
        "clusters": {"a": ADDRESS, "b": ADDRESS},
        "pools": {"main": {"slots": 1}},
        "links": {name: {"source": "a", "destination": "b", "pool": "main"} for name in ("one", "two")},
    }
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(raw))
    return load(tmp_path / "links.yaml")


@pytest.fixture
def heard() -> dict[str, int | None]:
    """Link -> the time of its only slot's newest report; None: it cannot be read."""
    return dict.fromkeys(("one", "two"), SILENT_AT_MS - 40_000)


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch, file: LinksFile, heard: dict[str, int | None]) -> Launcher:
    def plans(_: LinksFile, link: str) -> Any:
        at_ms = heard[link]
        if at_ms is None:
            raise ClusterUnavailable("b", "timed out")
        report = Report.model_construct(**{"at_ms": at_ms, "bytes_per_second": 1.0})  # noqa: PIE804  nothing else is read
        plan = Plan(link=link, group="default", version=1, producer_id=1, slots=1, topics=(), published_at_ms=1)
        return {"default": plan}, {}, {("default", 0): (report,)}

    one = Launcher(PoolSpec(pool="main", slots=1, slot_memory_bytes=1, checkpoint_dir="/c"))
    monkeypatch.setattr(applications, "launcher", lambda _: one)
    monkeypatch.setattr(applications, "spec_of", lambda _, link, __, standby: app_spec(link))
    supervise = SimpleNamespace(launcher=one, end_orphans=lambda *_: [], end=lambda name, _: one.stop(name))
    monkeypatch.setattr(applications, "supervisor", lambda *_: supervise)
    monkeypatch.setattr(applications, "end_separate", lambda *_: [])
    monkeypatch.setattr(submitting, "_with_selection", lambda _: file)
    monkeypatch.setattr(submitting, "_plans", plans)
    for link in ("one", "two"):
        application = pools._of_link(file, link)[0]
        one.spec_ = application._wanted(link, [app_spec(link)], {})
    assert list(one.spec_.links) == ["one", "two"]
    return one


def due(link: str, silent_at_ms: int = SILENT_AT_MS) -> list[dict[str, Any]]:
    steps = Steps(link)
    found, held = submitting.due_applications(link, steps, {"default": silent_at_ms}, "", Run("r", 1))
    assert (held, steps.failures) == ({}, [])
    return found


def test_one_of_which_no_slot_reports_is_restarted_once(launcher: Launcher) -> None:
    """The runs of all its links find it silent at about the same time."""
    asked = {link: due(link)[0] for link in ("one", "two")}
    assert {one["because"] for one in asked.values()} == {"restart: none of its slots reports"}
    for link, one in asked.items():
        submitting.submit(link, one, restart=one["restart"])
    assert launcher.did == ["stop", "submit"]
    assert due("one") == [], "it was replaced since"


@pytest.mark.parametrize("at_ms", [SILENT_AT_MS + 5_000, SILENT_AT_MS - 2_000])
def test_one_of_which_another_link_reports_goes_on(
    launcher: Launcher, heard: dict[str, int | None], at_ms: int
) -> None:
    heard["two"] = at_ms
    assert due("one") == []


def test_one_of_which_another_link_cannot_be_read_goes_on(launcher: Launcher, heard: dict[str, int | None]) -> None:
    heard["two"] = None
    assert due("one") == []


@pytest.mark.parametrize("state", [State.UNKNOWN, State.SUBMITTED])
def test_one_that_cannot_be_seen_goes_on(launcher: Launcher, state: State) -> None:
    launcher.state_ = Application(NAME, "1", state, "log", 1)
    assert bool(due("one")) == state.alive
