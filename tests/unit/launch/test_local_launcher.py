"""The launcher with a shell script in the place of spark-submit: what becomes of processes, not of Spark."""

import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from strait.config.app_spec import AppSpec, Placed, PoolSpec
from strait.config.audit import NICENESS, AuditJob, AuditRequest
from strait.config.links import Spark
from strait.errors import ConfigError, LaunchError, SetupError
from strait.launch import processes
from strait.launch.base import Application, State
from strait.launch.java import find_java
from strait.launch.local import LocalLauncher
from strait.launch.properties import TASK_ATTEMPTS
from strait.launch.submission import KEPT
from support.fixtures.waiting import eventually

SECRET = "correct horse battery"
SLEEPER = "exec sleep 600"
NAME = "strait-link-default"

Make = Callable[[str], LocalLauncher]


@pytest.fixture
def spec_path(tmp_path: Path) -> Path:
    spec = AppSpec(
        link="link",
        group="default",
        source_name="a",
        source={"bootstrap.servers": "a:9092"},
        destination_name="b",
        destination={"bootstrap.servers": "b:9092", "sasl.password": SECRET},
        slots=1,
        slot_memory_bytes=1 << 24,
        ledger_seconds=300,
        ledger_dir=str(tmp_path / "ledger"),
        checkpoint_dir=str(tmp_path / "checkpoint"),
    )
    spec.write(tmp_path / "spec.json")
    return tmp_path / "spec.json"


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Make]:
    """Makes a launcher whose spark-submit is the given shell script. What it starts is ended after the test."""
    directory = tmp_path / "applications"

    def make(script: str, **options: int) -> LocalLauncher:
        spark_submit = tmp_path / "spark" / "bin" / "spark-submit"
        spark_submit.parent.mkdir(parents=True, exist_ok=True)
        spark_submit.write_text(f"#!/bin/sh\n{textwrap.dedent(script)}\n")
        spark_submit.chmod(0o755)
        job = tmp_path / "job.py"  # without Strait's own there is no head start
        return LocalLauncher(directory, spark_submit=spark_submit, job=job, **options)

    yield make
    processes.end(lambda: [one for some in processes.find(directory).values() for one in some], grace_seconds=0)


def until_ended(launcher: LocalLauncher) -> Application:
    eventually(lambda: not found(launcher).state.alive, what="the end", within_seconds=90)
    return found(launcher)


def found(launcher: LocalLauncher) -> Application:
    application = launcher.state(NAME)
    assert application is not None
    return application


def alive(launcher: LocalLauncher) -> list[psutil.Process]:
    return [one for some in processes.find(launcher.directory).values() for one in some]


def test_an_audit_has_a_lower_priority_than_a_link(launcher: Make, spec_path: Path) -> None:
    one = launcher("sleep 600")
    spec = AppSpec.read(spec_path)
    here = os.getpriority(os.PRIO_PROCESS, 0)
    for audit, nicer in ((None, 0), (AuditJob(id="x", directory="audits", request=AuditRequest()), NICENESS)):
        spec.model_copy(update={"audit": audit}).write(spec_path)
        one.submit(NAME, spec_path, Spark())
        sleeper = eventually(
            lambda: next((it for it in alive(one) if "600" in it.cmdline()), None), what="what was submitted"
        )
        assert sleeper.nice() == min(19, here + nicer)
        one.stop(NAME, grace_seconds=0)


def test_what_was_never_submitted_is_not_known(launcher: Make) -> None:
    assert launcher("").state(NAME) is None
    assert launcher("").list() == ()


def test_it_is_submitted_until_it_says_that_it_has_started(launcher: Make, spec_path: Path) -> None:
    one = launcher("""
        while [ ! -e "$STRAIT_SUBMISSION/../go" ]; do sleep 0.05; done
        touch "$STRAIT_SUBMISSION/started"; sleep 600""")
    assert one.submit(NAME, spec_path, Spark()).state is State.SUBMITTED
    (one.directory / NAME / "go").touch()
    eventually(lambda: found(one).state is State.RUNNING, what="it runs")


def test_it_outlives_its_submitter_and_any_process_finds_it(launcher: Make, spec_path: Path) -> None:
    one = launcher(SLEEPER)
    code = """
import sys
from pathlib import Path
from strait.config.links import Spark
from strait.launch.local import LocalLauncher
directory, spark_submit, name, spec = sys.argv[1:]
print(LocalLauncher(Path(directory), spark_submit=Path(spark_submit)).submit(name, Path(spec), Spark()).id)
"""
    arguments = [one.directory, one.directory.parent / "spark/bin/spark-submit", NAME, spec_path]
    submitter = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], check=True, capture_output=True, text=True, timeout=60
    )
    assert (found(one).id, found(one).state) == (submitter.stdout.strip(), State.SUBMITTED)


def test_submitted_twice_it_runs_once(launcher: Make, spec_path: Path) -> None:
    one, another = launcher(SLEEPER), launcher(SLEEPER)
    assert one.submit(NAME, spec_path, Spark()).id == another.submit(NAME, spec_path, Spark()).id


@pytest.mark.parametrize(("exit_code", "state"), [(0, State.FINISHED), (1, State.DEAD), (3, State.DEAD)])
def test_its_exit_code_and_last_words_are_kept(launcher: Make, spec_path: Path, exit_code: int, state: State) -> None:
    one = launcher(f"echo 'strait: the disk is full' >&2; exit {exit_code}")
    one.submit(NAME, spec_path, Spark())
    ended = until_ended(one)
    assert (ended.state, ended.exit_code) == (state, exit_code)
    assert one.cause(ended) == f"exit code {exit_code}: the disk is full"


def test_a_killed_application_is_told_from_one_that_failed(launcher: Make, spec_path: Path) -> None:
    one = launcher("echo 'about to go'; kill -9 $$")
    one.submit(NAME, spec_path, Spark())
    assert one.cause(until_ended(one)) == "killed by signal 9 (SIGKILL): about to go"


def test_where_nobody_was_left_to_write_the_exit_code_that_is_said(launcher: Make, spec_path: Path) -> None:
    one = launcher("exec sleep 600")
    one.submit(NAME, spec_path, Spark())

    def killed() -> bool:
        """Parents first; a child that was just being started is met at the next look."""
        for process in alive(one):
            process.kill()
        return not found(one).state.alive

    eventually(killed, what="the end", within_seconds=90)
    ended = found(one)
    assert (ended.state, ended.exit_code) == (State.DEAD, None)
    assert one.cause(ended) == "killed (no exit status was written); its log is empty"


def test_stop_lets_it_end_by_itself_with_0(launcher: Make, spec_path: Path) -> None:
    one = launcher(f"""exec {sys.executable} -c '
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True: signal.pause()'""")
    one.submit(NAME, spec_path, Spark())
    one.stop(NAME, grace_seconds=60)
    assert found(one).state is State.FINISHED


def test_stop_leaves_nothing_behind_whatever_groups_and_sessions_its_processes_made(
    launcher: Make, spec_path: Path
) -> None:
    one = launcher("setsid sleep 600 & (setsid setsid sleep 600 &); sleep 600")
    one.submit(NAME, spec_path, Spark())

    def sleeping() -> int:
        found = 0
        for process in alive(one):
            with contextlib.suppress(psutil.NoSuchProcess):  # a shell or a setsid that has just ended
                found += process.name() == "sleep"
        return found

    eventually(lambda: sleeping() == 3, what="all have started")
    one.stop(NAME, grace_seconds=0)
    assert not alive(one)
    assert found(one).state is State.DEAD


def test_what_runs_is_listed_and_ended_even_when_all_records_are_lost(launcher: Make, spec_path: Path) -> None:
    one = launcher(SLEEPER)
    one.submit(NAME, spec_path, Spark())
    subprocess.run(["rm", "-r", one.directory], check=True)
    assert [(application.name, application.state.alive) for application in one.list()] == [(NAME, True)]
    one.stop(NAME, grace_seconds=0)
    assert not alive(one)


def test_the_last_few_submissions_are_kept(launcher: Make, spec_path: Path) -> None:
    one = launcher("true")
    ids = []
    for _ in range(KEPT + 2):
        ids.append(one.submit(NAME, spec_path, Spark()).id)
        until_ended(one)
    kept = sorted(path.name for path in (one.directory / NAME).iterdir())
    assert kept == ids[2:]
    assert [each.id for each in one.history(NAME)] == list(reversed(ids[2:]))
    assert {each.state for each in one.history(NAME)[1:]} <= {State.FINISHED, State.DEAD}


def test_a_new_spec_under_the_old_path_does_not_reach_what_runs(launcher: Make, spec_path: Path) -> None:
    one = launcher(SLEEPER)
    one.submit(NAME, spec_path, Spark())
    old = AppSpec.read(spec_path)
    old.model_copy(update={"ledger_seconds": 1}).write(spec_path)
    assert one.spec(found(one)) == old


def test_a_pool_that_runs_gets_another_spec_and_tells_no_secret_of_any_member(launcher: Make, spec_path: Path) -> None:
    member = AppSpec.read(spec_path)
    pool = PoolSpec(
        pool="main", slots=1, slot_memory_bytes=1 << 24, checkpoint_dir=member.checkpoint_dir, members=(member,),
        placement=(Placed(link="link", group="default", slot=0, task=0),),
    )  # fmt: skip
    pool.write(spec_path)
    one = launcher(f"echo 'strait: refused: {SECRET}'; [ ! -e go ] && exec sleep 600")
    one.submit(NAME, spec_path, Spark())
    assert one.spec(found(one)) == pool
    changed = pool.model_copy(update={"members": (member, member.model_copy(update={"link": "other"}))})
    assert one.update(found(one), changed)
    assert one.spec(found(one)) == changed
    assert (Path(found(one).log).parent / "spec.json").stat().st_mode & 0o777 == 0o600
    one.stop(NAME, grace_seconds=0)
    assert SECRET not in one.cause(found(one))


def test_secrets_are_in_no_command_line_and_in_no_cause(launcher: Make, spec_path: Path) -> None:
    one = launcher(f"echo 'refused: {SECRET}'; sleep 600")
    one.submit(NAME, spec_path, Spark(conf={"spark.authenticate.secret": SECRET}))
    eventually(lambda: Path(found(one).log).read_text(), what="it has said something")
    assert not any(SECRET in " ".join(process.cmdline()) for process in alive(one))
    assert SECRET in (Path(found(one).log).parent / "spark.properties").read_text().replace("\\ ", " ")
    assert Path(found(one).log).parent.stat().st_mode & 0o077 == 0
    one.stop(NAME, grace_seconds=0)
    assert one.cause(found(one)).endswith("refused: ***")


def test_airflow_s_own_settings_do_not_reach_it(
    launcher: Make, spec_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "postgresql://user:password@host/db")
    one = launcher("env")
    one.submit(NAME, spec_path, Spark())
    assert "AIRFLOW" not in Path(until_ended(one).log).read_text()


def test_without_java_it_says_so(
    launcher: Make, spec_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"JAVA_HOME: /nowhere/bin/java does not run \(install Java 17 or later"):
        launcher("").submit(NAME, spec_path, Spark())


def test_a_java_home_that_is_of_no_use_is_kept_from_spark(
    launcher: Make, spec_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    useful = find_java()
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", str(useful.parent), prepend=":")
    one = launcher('echo "home=${JAVA_HOME-none}"')
    one.submit(NAME, spec_path, Spark())
    assert "home=none" in Path(until_ended(one).log).read_text()


def test_without_a_spec_it_says_so(launcher: Make, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.json"):
        launcher("").submit(NAME, tmp_path / "missing.json", Spark())


def test_what_cannot_be_started_leaves_no_submission(launcher: Make, spec_path: Path) -> None:
    one = launcher("")
    one.directory.mkdir()
    (one.directory / NAME).write_text("a file where its folder should be")
    with pytest.raises(LaunchError, match="starting it"):
        one.submit(NAME, spec_path, Spark())
    assert one.list() == ()


def test_more_slots_than_cores_are_refused_with_both_numbers(launcher: Make, spec_path: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    AppSpec.read(spec_path).model_copy(update={"slots": cores + 1}).write(spec_path)
    with pytest.raises(
        SetupError, match=f"needs {cores + 1} cores for its {cores + 1} slots, this machine has {cores}"
    ):
        launcher("").submit(NAME, spec_path, Spark())
    assert launcher("").state(NAME) is None


def test_the_links_own_spark_properties_win(launcher: Make, spec_path: Path) -> None:
    one = launcher("cat spark.properties")
    one.submit(NAME, spec_path, Spark(driver_memory="1g", conf={"spark.ui.enabled": "true"}))
    said = Path(until_ended(one).log).read_text().splitlines()
    assert "spark.driver.memory=1g" in said
    assert "spark.ui.enabled=true" in said and "spark.ui.enabled=false" not in said
    assert f"spark.master=local[2,{TASK_ATTEMPTS}]" in said


def test_a_standalone_master_is_asked_for_as_many_cores_as_slots(launcher: Make, spec_path: Path) -> None:
    one = launcher("cat spark.properties")
    one.submit(NAME, spec_path, Spark(master="spark://host:7077"))
    said = Path(until_ended(one).log).read_text().splitlines()
    assert "spark.master=spark\\://host\\:7077" in said
    assert "spark.cores.max=1" in said


def test_the_launcher_imports_neither_spark_nor_airflow() -> None:
    code = "import sys, strait.launch.local; sys.exit(any(name in sys.modules for name in ('pyspark', 'airflow')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
