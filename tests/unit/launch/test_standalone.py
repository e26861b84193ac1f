"""The launcher for Spark Standalone with a master of the test's own: what it makes of what that says."""

import json
from collections.abc import Mapping
from functools import partial
from http.client import BadStatusLine, IncompleteRead
from pathlib import Path
from typing import Any

import pytest

from strait.config.app_spec import AppSpec
from strait.config.links import Spark
from strait.errors import ConfigError, LaunchError
from strait.launch import launchers
from strait.launch.base import State
from strait.launch.launchers import launcher_for
from strait.launch.local import LocalLauncher
from strait.launch.properties import spark_properties
from strait.launch.standalone import launcher as standalone
from strait.launch.standalone.launcher import StandaloneLauncher
from strait.launch.standalone.master import Driver, Master, Seen
from strait.launch.standalone.request import create_request, session_properties

NAME = "strait-link-default"
SECRET = "correct-horse-battery"
SPARK = Spark(
    master="spark://m:7077", deploy_mode="cluster", conf={"spark.own": SECRET, "spark.driver.extraJavaOptions": "-Dx=y"}
)


class FakeMaster:
    """Says what the test put in. A driver that is created waits for a worker."""

    url = page = "spark://m:7077"

    def __init__(self) -> None:
        self.drivers: dict[str, Driver] = {}
        self.commands: dict[str, str] = {}
        self.applications: set[str] = set()
        self.requests: list[Mapping[str, Any]] = []
        self.down = False

    def look(self) -> Seen:
        if self.down:
            raise LaunchError("Spark master spark://m:7077: looking for drivers: no")
        return Seen(tuple(self.drivers.values()), frozenset(self.applications), 4)

    def create(self, request: Mapping[str, Any]) -> str:
        self.requests.append(request)
        return self.put(f"driver-{len(self.drivers)}", "SUBMITTED", page="")

    def kill(self, driver: str) -> None:
        self.put(driver, "KILLED")

    def log(
        self, page: str, driver: str, kind: str, *, first: int | None = None, last: int | None = None
    ) -> str | None:
        return None if page == "http://silent" else self.commands.get(driver, "")

    def put(self, driver: str, state: str, *, page: str = "http://w") -> str:
        self.drivers[driver] = Driver(driver, state, page, state in ("SUBMITTED", "RUNNING"))
        return driver


@pytest.fixture
def master() -> FakeMaster:
    return FakeMaster()


@pytest.fixture
def launcher(master: FakeMaster, tmp_path: Path) -> StandaloneLauncher:
    return with_master(StandaloneLauncher(SPARK, tmp_path / "applications"), master)


def with_master(launcher: StandaloneLauncher, master: FakeMaster) -> StandaloneLauncher:
    launcher._master = launcher._drivers._master = master  # type: ignore[assignment]
    return launcher


@pytest.fixture
def spec_path(tmp_path: Path) -> Path:
    spec(slots=1).write(tmp_path / "spec.json")
    return tmp_path / "spec.json"


def spec(slots: int) -> AppSpec:
    ends = {"source_name": "a", "source": {"sasl.password": SECRET}, "destination_name": "b", "destination": {}}
    sizes = {"slots": slots, "slot_memory_bytes": 1, "ledger_seconds": 20, "ledger_dir": "l", "checkpoint_dir": "c"}
    return AppSpec(link="link", group="default", **ends, **sizes)


def command(folder: Path) -> str:
    return f'Launch Command: "java" "SparkSubmit" "--spec" "{folder}/spec.json"\n====\n'


def state(launcher: StandaloneLauncher) -> State | None:
    found = launcher.state(NAME)
    return None if found is None else found.state


def test_nothing_of_a_link_is_in_what_everybody_can_read(launcher, master, spec_path):
    one = launcher.submit(NAME, spec_path, SPARK)
    folder = launcher.directory / NAME / one.id
    assert SECRET not in json.dumps(master.requests)
    assert SECRET in (folder / "session.json").read_text()
    assert {
        path.name: oct(path.stat().st_mode & 0o777) for path in (folder, folder / "session.json", folder / "spec.json")
    } == {
        one.id: "0o700",
        "session.json": "0o600",
        "spec.json": "0o600",
    }


def test_what_the_jvm_starts_with_is_asked_of_the_worker_and_the_rest_of_the_session(tmp_path):
    request = create_request(NAME, tmp_path, Path("/job.py"), SPARK, "4.2.0")
    session = session_properties(NAME, spec(slots=3), SPARK)
    assert request["sparkProperties"]["spark.driver.extraJavaOptions"] == "-Dx=y"
    assert request["sparkProperties"]["spark.driver.supervise"] == "true"
    assert "spark.driver.extraJavaOptions" not in session
    assert (session["spark.cores.max"], session["spark.own"]) == ("3", SECRET)
    assert request["appArgs"][-5:] == [
        "/job.py",
        "--spec",
        f"{tmp_path}/spec.json",
        "--properties",
        f"{tmp_path}/session.json",
    ]


def test_a_package_brings_its_own_python_and_libraries(tmp_path):
    packed = SPARK.model_copy(update={"package": "/shared/p.tar.gz"})
    request, session = (
        create_request(NAME, tmp_path, Path("/job.py"), packed, "4.2.0"),
        session_properties(NAME, spec(slots=1), packed),
    )
    assert request["appArgs"][-6:-4] == [f"{tmp_path}/unpack.py", "/shared/p.tar.gz"]
    assert "spark.pyspark.python=./environment/bin/python" in request["appArgs"]
    assert session["spark.archives"] == "/shared/p.tar.gz#environment"
    assert "PYTHONPATH" not in request["environmentVariables"]
    assert "spark.executorEnv.PYTHONPATH" not in session


def test_a_driver_that_waits_for_a_worker_is_known_by_what_was_written_down(launcher, master, spec_path, tmp_path):
    one = launcher.submit(NAME, spec_path, SPARK)
    assert launcher.submit(NAME, spec_path, SPARK).id == one.id
    again = with_master(StandaloneLauncher(SPARK, tmp_path / "applications"), master)
    assert state(again) is State.SUBMITTED
    assert len(master.requests) == 1


def test_a_driver_that_was_lost_with_its_worker_is_found_under_its_new_id(launcher, master, spec_path):
    one = launcher.submit(NAME, spec_path, SPARK)
    folder = launcher.directory / NAME / one.id
    master.put("driver-0", "RUNNING")
    (folder / "started").touch()
    assert state(launcher) is State.RUNNING
    master.put("driver-0", "RELAUNCHING")  # and it says so for ever
    master.put("driver-1", "SUBMITTED", page="")
    assert state(launcher) is State.SUBMITTED  # it may be the one that waits
    master.put("driver-1", "RUNNING", page="http://silent")
    assert state(launcher) is State.SUBMITTED
    master.put("driver-1", "RUNNING")
    assert state(launcher) is State.SUBMITTED  # its worker has not written anything yet
    master.commands["driver-1"] = command(folder)
    assert state(launcher) is State.RUNNING
    assert [found.id for found in launcher.history(NAME)] == [one.id]
    master.put("driver-1", "KILLED")
    assert state(launcher) is State.DEAD


def test_one_that_the_master_forgot_is_dead_unless_a_driver_may_be_it(launcher, master, spec_path):
    launcher.submit(NAME, spec_path, SPARK)
    master.drivers.clear()
    assert state(launcher) is State.DEAD
    master.put("driver-9", "SUBMITTED", page="")
    assert state(launcher) is State.SUBMITTED
    master.commands["driver-9"] = 'Launch Command: "java" "Other"\n'
    master.put("driver-9", "RUNNING")
    assert state(launcher) is State.DEAD


def test_a_driver_that_was_killed_is_dead_whoever_else_waits(launcher, master, spec_path):
    launcher.submit(NAME, spec_path, SPARK)
    master.put("driver-0", "KILLED")
    master.put("driver-1", "SUBMITTED", page="")
    assert state(launcher) is State.DEAD


def test_while_no_master_answers_nothing_is_known(launcher, master, spec_path):
    one = launcher.submit(NAME, spec_path, SPARK)
    master.down = True
    assert (launcher.state(NAME).id, state(launcher)) == (one.id, State.UNKNOWN)
    assert [found.state for found in launcher.list()] == [State.UNKNOWN]
    with pytest.raises(LaunchError, match="looking for drivers"):
        launcher.submit(NAME, spec_path, SPARK)
    assert len(launcher.history(NAME)) == 1


def test_without_what_it_wrote_down_it_is_found_by_its_command(launcher, master, spec_path, tmp_path):
    one = launcher.submit(NAME, spec_path, SPARK)
    master.put("driver-0", "RUNNING")
    master.commands["driver-0"] = command(launcher.directory / NAME / one.id)
    launcher.directory.rename(tmp_path / "gone")
    again = with_master(StandaloneLauncher(SPARK, launcher.directory), master)
    assert (again.state(NAME).id, state(again)) == (one.id, State.SUBMITTED)
    assert [each.id for each in again.list()] == [one.id]
    (tmp_path / "gone").rename(launcher.directory)  # its host sees the shared directory again
    assert again.spec(again.state(NAME)) == AppSpec.read(spec_path)


def test_another_installation_leaves_drivers_of_the_same_name_alone(launcher, master, spec_path, tmp_path, monkeypatch):
    one = launcher.submit(NAME, spec_path, SPARK)
    master.put("driver-0", "RUNNING")
    master.commands["driver-0"] = command(launcher.directory / NAME / one.id)
    other = with_master(StandaloneLauncher(SPARK, tmp_path / "other"), master)
    assert (state(other), other.list()) == (None, ())
    master.applications.add(NAME)  # as the driver's own; a stranger's in client mode shows nothing else
    monkeypatch.setattr(standalone, "_EXECUTORS_SECONDS", 0.0)
    monkeypatch.setattr(standalone, "_POLL_SECONDS", 0.01)
    other.stop(NAME, grace_seconds=0.0)
    assert master.drivers["driver-0"].state == "RUNNING"
    assert other.submit(NAME, spec_path, SPARK).id != one.id
    assert len(master.requests) == 2


def test_stop_asks_first_and_kills_what_is_left(launcher, master, spec_path):
    one = launcher.submit(NAME, spec_path, SPARK)
    master.put("driver-0", "RUNNING")
    launcher.stop(NAME, grace_seconds=0.0)
    assert (launcher.directory / NAME / one.id / "stop").exists()
    assert master.drivers["driver-0"].state == "KILLED"
    assert state(launcher) is State.DEAD
    assert not (launcher.directory / NAME / one.id / "scratch").exists()


def test_a_submission_that_fails_leaves_nothing(launcher, master, spec_path, monkeypatch):
    def refuse(_: object) -> str:
        raise LaunchError("Spark master: submitting: no")

    monkeypatch.setattr(master, "create", refuse)
    with pytest.raises(LaunchError):
        launcher.submit(NAME, spec_path, SPARK)
    assert launcher.history(NAME) == ()


@pytest.mark.parametrize(
    ("spark", "parent", "kind"),
    [(Spark(), None, LocalLauncher), (SPARK, None, StandaloneLauncher), (SPARK, 1, LocalLauncher)],
)
def test_a_link_gets_the_launcher_that_it_asks_for(spark, parent, kind, tmp_path):
    assert type(launcher_for(spark, tmp_path, parent_pid=parent)) is kind


def test_what_runs_where_the_earlier_settings_had_it_is_ended_first(launcher, master, spec_path, monkeypatch):
    launcher.submit(NAME, spec_path, SPARK)
    monkeypatch.setattr(launchers, "launcher_for", lambda *_: launcher)
    monkeypatch.setattr(launcher, "stop", partial(launcher.stop, grace_seconds=0.0))
    assert launchers.end_elsewhere(NAME, SPARK, launcher.directory) == ""
    assert state(launcher) is State.SUBMITTED
    assert "ended on spark://m:7077, local is asked for" in launchers.end_elsewhere(NAME, Spark(), launcher.directory)
    assert state(launcher) is State.DEAD
    assert launchers.end_elsewhere(NAME, Spark(), launcher.directory) == ""


@pytest.mark.parametrize("kept", ["", "{", '{"master": "local", "unknown": 1}'])
def test_a_place_that_cannot_be_read_or_asked_stands_in_no_way(launcher, master, spec_path, monkeypatch, kept):
    launcher.submit(NAME, spec_path, SPARK)

    def unavailable(*_):
        raise ConfigError("spark", ["its token is gone"])

    monkeypatch.setattr(launchers, "launcher_for", unavailable)
    assert launchers.end_elsewhere(NAME, Spark(), launcher.directory) == ""
    (place,) = launcher.directory.glob("*/*/place.json")
    place.write_text(kept)
    assert launchers.end_elsewhere(NAME, Spark(), launcher.directory) == ""


def test_a_connection_that_nobody_has_read_is_no_local_application(tmp_path):
    with pytest.raises(ConfigError, match="spark_conn_id: s: only Airflow can read a Connection"):
        launcher_for(Spark(spark_conn_id="s"), tmp_path)


def test_a_master_that_is_not_there_is_named_with_what_to_check():
    nobody = Spark.model_validate(
        {"master": "spark://127.0.0.1:1", "deploy_mode": "cluster", "standalone": {"web_url": "http://127.0.0.1:1"}}
    )
    with pytest.raises(LaunchError, match=r"looking for drivers: http://127.0.0.1:1: Connection refused \(check"):
        Master(nobody).look()


@pytest.mark.parametrize("error", [IncompleteRead(b""), BadStatusLine("x")])
def test_an_answer_that_breaks_off_is_none(error, monkeypatch):
    def break_off(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("urllib.request.urlopen", break_off)
    master = Master(SPARK)
    with pytest.raises(LaunchError, match="looking for drivers: http://m:8080: answers what no Spark master"):
        master.look()
    with pytest.raises(LaunchError, match="submitting: http://m:6066: answers what no Spark master"):
        master.create({})
    assert master.log("http://w", "driver-0", "stderr", last=1) is None


@pytest.mark.parametrize("evaluates", [True, False])
def test_jvms_compile_thoroughly_only_if_they_evaluate_expressions(evaluates):
    session = session_properties(NAME, spec(slots=1).model_copy(update={"transforms": evaluates}), SPARK)
    assert ("TieredStopAtLevel" in session["spark.executor.defaultJavaOptions"]) is not evaluates
    local = spark_properties(NAME, 1, Spark(), Path("/scratch"), "-Da=b", evaluates=evaluates)
    assert ("TieredStopAtLevel" in local["spark.driver.defaultJavaOptions"]) is not evaluates
    assert ("MaxNewSize" in local["spark.driver.defaultJavaOptions"]) is evaluates
    assert local["spark.driver.defaultJavaOptions"].endswith(" -Da=b")


def test_sockets_of_processes_that_evaluate_expressions_are_where_their_paths_fit():
    enabled, folder = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
    shared = "/tmp"  # noqa: S108
    assert enabled not in spark_properties(NAME, 1, Spark(), Path("/scratch"))
    assert session_properties(NAME, spec(slots=1).model_copy(update={"transforms": True}), SPARK)[folder] == shared
    for scratch, expected in (("/" + 63 * "s", "/" + 63 * "s"), ("/" + 64 * "s", shared), ("/" + 32 * "ß", shared)):
        found = spark_properties(NAME, 1, Spark(), Path(scratch), evaluates=True)
        assert (found[enabled], found[folder]) == ("true", expected)
