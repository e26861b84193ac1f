"""What the runs of links in Airflow make of their pool's application: each changes its own part, and others' stay."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.config.app_spec import AppSpec, PoolSpec, read_spec
from strait.config.links import LinksFile, load
from strait.launch.base import Application, State
from strait.state.report_records import Report
from strait.state.schema import Plan
from strait_airflow import applications, pools

ADDRESS = {"bootstrap.servers": "a:1"}
NAME = "strait-pool-main"
STANDBY = f"{NAME}.standby"


class Launcher:
    """Runs what is submitted until it is stopped."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.specs: dict[str, PoolSpec] = {}
        self.states: dict[str, State] = {}
        self.passes_on_specs = True

    @property
    def current(self) -> PoolSpec | None:
        return self.specs.get(NAME)

    def submit(self, name: str, spec_path: Path, _: Any) -> Application:
        spec = read_spec(spec_path)
        assert isinstance(spec, PoolSpec)
        self._note("submit", name, spec)
        self.states.pop(name, None)
        return Application(name, "1", State.RUNNING, "log", 0)

    def update(self, found: Application, spec: PoolSpec) -> bool:
        if not self.passes_on_specs:
            return False
        self._note("update", found.name, spec)
        return True

    def state(self, name: str) -> Application | None:
        state = self.states.get(name, State.RUNNING)
        return Application(name, "1", state, "log", 0) if name in self.specs else None

    def spec(self, found: Application) -> PoolSpec | None:
        return self.specs.get(found.name)

    def history(self, _: str) -> tuple[Application, ...]:
        return ()

    def cause(self, _: Application) -> str:
        return "killed"

    def stop(self, name: str) -> None:
        self._note("stop", name, None)

    def _note(self, verb: str, name: str, spec: PoolSpec | None) -> None:
        self.did.append(verb if name == NAME else f"{verb} {name}")
        if spec is None:
            del self.specs[name]
        else:
            self.specs[name] = spec


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Launcher:
    one = Launcher()
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(tmp_path / "links.yaml"))
    monkeypatch.setattr(applications, "launcher", lambda _: one)
    monkeypatch.setattr(applications, "spec_of", spec_of)
    return one


def spec_of(_: LinksFile, link: str, plan: Plan, *, standby: bool) -> AppSpec:
    return AppSpec(
        link=link, group=plan.group, source_name="a", source=ADDRESS, destination_name="b", destination=ADDRESS,
        slots=plan.slots, slot_memory_bytes=1, ledger_seconds=60, ledger_dir="/l", checkpoint_dir="/c", standby=standby,
    )  # fmt: skip


def write(folder: Path, *, standby: bool = False, **of: str | None) -> LinksFile:
    """The links file: link -> its pool."""
    raw = {
        "clusters": {"a": ADDRESS, "b": ADDRESS},
        "pools": {"main": {"slots": 1, "standby": standby}},
        "links": {
            name: {"source": "a", "destination": "b"} | ({"pool": pool} if pool else {}) for name, pool in of.items()
        },
    }
    (folder / "links.yaml").write_text(yaml.safe_dump(raw))
    return load(folder / "links.yaml")


def plan(link: str, *, stopped: bool = False) -> Plan:
    return Plan(
        link=link, group="default", version=1, producer_id=1, slots=1, topics=(), published_at_ms=1, stopped=stopped
    )


def links(launcher: Launcher) -> list[str]:
    assert launcher.current is not None
    return list(launcher.current.links)


def test_each_run_changes_its_own_part(launcher: Launcher, tmp_path: Path) -> None:
    file = write(tmp_path, one="main", two="main")
    (line,) = pools.ensure(file, "one", [plan("one")], {})
    assert line.startswith(f"{NAME}: submitted: ")
    pools.ensure(file, "two", [plan("two")], {})
    assert (launcher.did, links(launcher)) == (["submit", "update"], ["one", "two"])
    pools.ensure(file, "two", [plan("two")], {})
    assert launcher.did == ["submit", "update"], "nothing has changed"
    pools.ensure(file, "one", [plan("one", stopped=True)], {})
    assert links(launcher) == ["two"]
    pools.ensure(file, "two", [plan("two", stopped=True)], {})
    assert launcher.did[-1] == "stop"
    assert (tmp_path / "home/pools/main.json").stat().st_mode & 0o777 == 0o600


def test_links_that_name_the_pool_no_more_leave_it(launcher: Launcher, tmp_path: Path) -> None:
    file = write(tmp_path, one="main", two="main", three="main")
    for link in ("one", "two", "three"):
        pools.ensure(file, link, [plan(link)], {})
    file = write(tmp_path, one="main", two=None)
    assert pools.tidy(file, "two") == [f"{NAME}: updated: other members, placement"]
    assert links(launcher) == ["one"]
    assert pools.tidy(file, "two") == []
    file = write(tmp_path, two=None)
    pools.tidy(file, "two")
    assert launcher.did[-1] == "stop"


def test_after_an_upgrade_all_links_go_over_together(
    launcher: Launcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, one="main", two="main")
    for link in ("one", "two"):
        pools.ensure(file, link, [plan(link)], {})
    assert launcher.current is not None
    old = launcher.current.model_copy(update={"strait": "0.0.1"})
    old = old.model_copy(update={"members": tuple(one.model_copy(update={"strait": "0.0.1"}) for one in old.members)})
    launcher.specs[NAME] = old
    old.write(tmp_path / "home/pools/main.json")
    pools.ensure(file, "one", [plan("one")], {})
    assert launcher.did[-2:] == ["stop", "submit"]
    assert links(launcher) == ["one", "two"]
    assert {one.strait for one in launcher.current.members} == {launcher.current.strait}
    assert launcher.current.strait != "0.0.1"


def test_a_standby_hosts_what_the_application_does(launcher: Launcher, tmp_path: Path) -> None:
    file = write(tmp_path, standby=True, one="main", two="main")
    due, held = pools.due(file, "one", [plan("one")], {})
    assert [(one.name, one.standby) for one in due] == [(NAME, False), (STANDBY, True)]
    assert not held
    for link in ("one", "two"):
        for standby in (False, True):
            pools.ensure(file, link, [plan(link)], {}, standby=standby)
    first, waiting = launcher.specs[NAME], launcher.specs[STANDBY]
    assert (list(waiting.links), waiting.placement) == (["one", "two"], first.placement)
    assert (waiting.standby, first.standby) == (True, False)
    assert all(member.standby and member.checkpoint_dir == waiting.checkpoint_dir for member in waiting.members)
    assert waiting.checkpoint_dir != first.checkpoint_dir
    assert pools.due(file, "one", [plan("one")], {}) == ([], {})

    file = write(tmp_path, one="main", two="main")
    (stop,) = pools.due(file, "one", [plan("one")], {})[0]
    assert (stop.name, stop.because) == (STANDBY, "stop: its pool has no standby or no link")
    pools.ensure(file, "one", [plan("one")], {}, standby=True)
    assert launcher.did[-1] == f"stop {STANDBY}"
    assert pools.due(file, "one", [plan("one")], {}) == ([], {})


def test_a_standby_is_not_replaced_while_it_may_be_the_one_that_copies(launcher: Launcher, tmp_path: Path) -> None:
    file = write(tmp_path, standby=True, one="main")
    for standby in (False, True):
        pools.ensure(file, "one", [plan("one")], {}, standby=standby)
    other = file.pools["main"].model_copy(update={"slot_memory_mib": 32})
    file = file.model_copy(update={"pools": {"main": other}})
    launcher.states[NAME] = State.SUBMITTED
    assert [one.name for one in pools.due(file, "one", [plan("one")], {})[0]] == [NAME]
    launcher.states[NAME] = State.RUNNING
    assert [one.name for one in pools.due(file, "one", [plan("one")], {})[0]] == [NAME], "it will end for its own"
    pools.ensure(file, "one", [plan("one")], {})
    assert [one.name for one in pools.due(file, "one", [plan("one")], {})[0]] == [STANDBY]


def test_other_links_replace_a_standby_only_after_the_application(launcher: Launcher, tmp_path: Path) -> None:
    """A cluster that cannot pass specs on runs another application for each change."""
    launcher.passes_on_specs = False
    file = write(tmp_path, standby=True, one="main", two="main")
    for standby in (False, True):
        pools.ensure(file, "one", [plan("one")], {}, standby=standby)
    launcher.did.clear()
    assert [one.name for one in pools.due(file, "two", [plan("two")], {})[0]] == [NAME]
    pools.ensure(file, "two", [plan("two")], {}, standby=True)
    assert launcher.did == []
    pools.ensure(file, "two", [plan("two")], {})
    launcher.states[NAME] = State.SUBMITTED
    pools.ensure(file, "two", [plan("two")], {}, standby=True)
    assert launcher.did == ["stop", "submit"]
    launcher.states[NAME] = State.RUNNING
    pools.ensure(file, "two", [plan("two")], {}, standby=True)
    assert launcher.did == ["stop", "submit", f"stop {STANDBY}", f"submit {STANDBY}"]


def test_links_that_name_no_pool_are_in_the_default_one(launcher: Launcher, tmp_path: Path) -> None:
    write(tmp_path, one=None, two=None)
    path = tmp_path / "links.yaml"
    raw = yaml.safe_load(path.read_text())
    raw["pools"]["main"]["default"] = True
    path.write_text(yaml.safe_dump(raw))
    for link in ("one", "two"):
        pools.ensure(load(path), link, [plan(link)], {})
    assert links(launcher) == ["one", "two"], "one run leaves the other link where it is"
    raw["links"]["two"]["pool"] = False
    path.write_text(yaml.safe_dump(raw))
    pools.tidy(load(path), "one")
    assert links(launcher) == ["one"]


def test_loads_are_those_of_the_newest_reports() -> None:
    def report(at_ms: int, rate: float) -> Report:
        facts = {"at_ms": at_ms, "bytes_per_second": rate}  # nothing else is read
        return Report.model_construct(**facts)

    found = pools._loads("one", {("default", 0): (report(2, 5.0), report(1, 9.0)), ("default", 1): ()})
    assert {str(seat): load for seat, load in found.items()} == {"one/default/0": 5.0}


def test_runs_on_other_workers_keep_the_links_that_the_application_runs(launcher: Launcher, tmp_path: Path) -> None:
    """Each worker has its own home; only the cluster knows all links of the pool."""
    launcher.passes_on_specs = False
    file = write(tmp_path, one="main", two="main")
    for link in ("one", "two"):
        on_another_worker(tmp_path)
        pools.ensure(file, link, [plan(link)], {})
    assert links(launcher) == ["one", "two"]
    did = list(launcher.did)
    for link in ("one", "two"):
        on_another_worker(tmp_path)
        assert pools.due(file, link, [plan(link)], {}) == ([], {})
        pools.ensure(file, link, [plan(link)], {})
    assert launcher.did == did, "nothing has changed"

    launcher.states[NAME] = State.UNKNOWN
    on_another_worker(tmp_path)
    pools.due(file, "two", [plan("two")], {})
    assert not (tmp_path / "home/pools/main.json").exists(), "the other links of the pool are unknown"
    launcher.states[NAME] = State.DEAD
    on_another_worker(tmp_path)
    pools.ensure(file, "one", [plan("one")], {})
    assert (launcher.did[-1], links(launcher)) == ("submit", ["one", "two"])


def test_a_file_of_this_host_that_is_older_than_the_application_brings_back_no_former_part(
    launcher: Launcher, tmp_path: Path
) -> None:
    launcher.passes_on_specs = False
    file = write(tmp_path, one="main", two="main")
    for link in ("one", "two"):
        pools.ensure(file, link, [plan(link)], {})
    kept = tmp_path / "home/pools/main.json"
    before = kept.read_bytes()
    pools.ensure(file, "two", [plan("two").model_copy(update={"slots": 2})], {})
    kept.write_bytes(before)
    pools.ensure(file, "one", [plan("one")], {})
    assert launcher.current is not None
    assert {one.link: one.slots for one in launcher.current.members} == {"one": 1, "two": 2}


def on_another_worker(folder: Path) -> None:
    shutil.rmtree(folder / "home", ignore_errors=True)
