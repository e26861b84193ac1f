"""The application on real Spark and real brokers: what it copies, what its ledger says, how it ends."""

import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from strait.errors import SetupError
from strait.launch.base import EXIT_CONFIG, EXIT_FAILED, EXIT_NEEDS_MORE_CORES, State
from strait.launch.local import LocalLauncher
from support.fixtures.waiting import eventually
from support.links.links import Link

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def test_each_interval_leaves_one_file_with_a_row_for_each_partition_that_was_copied(link: Link) -> None:
    link.produce(1000)
    link.publish(slots=2)
    link.submit(slots=2, ledger_seconds=2)
    link.until(lambda: sum(row["records"] for row in link.ledger()) == 1000, "the first ones are in the ledger")
    before = link.ledger_files()
    link.produce(1000)
    link.until(lambda: sum(row["records"] for row in link.ledger()) == 2000, "what came later is in the ledger")
    assert len(link.ledger_files()) > len(before)

    def after_the_head_start() -> list[str]:
        return [row["state"] for row in link.ledger() if not row["application"].startswith("head-start")]

    link.until(
        lambda: after_the_head_start().count("caught_up") >= link.partitions, "Spark's slots have nothing to add"
    )
    known = link.ledger()
    link.launcher.stop(link.name, grace_seconds=60)

    rows = link.ledger()
    assert len(rows) == len(known), "of an idle partition there is nothing to say"
    assert {path.suffix for path in link.ledger_files()} == {".parquet"}
    link.assert_ledger_is_whole()
    assert {(row["link"], row["group"], row["topic"], row["destination"]) for row in rows} == {
        (link.name, link.spec.group, link.name, link.name)
    }
    assert all(row["slot"] == row["partition"] % 2 for row in rows)
    for partition in range(link.partitions):
        mine = [row for row in rows if row["partition"] == partition]
        assert mine[0]["source_from"] == 0 and mine[-1]["source_to"] == 500
        assert all(after["source_from"] == before["source_to"] for before, after in pairwise(mine))


def test_it_starts_without_what_it_does_not_need(link: Link) -> None:
    """Each takes a second or half of one on the way to the first record."""
    link.produce(10)
    link.publish(slots=1)
    link.submit(ledger_seconds=3600)
    link.until(lambda: link.copied() == 10, "everything is copied")
    link.until(link.slot_process, "Spark runs the slot")
    commands = [" ".join(process.cmdline()) for process in link.processes()]
    assert any("create_data_source" in command for command in commands)
    assert not [command for command in commands if "lookup_data_sources" in command]
    driver = next(one for one in link.processes() if "replicate.py" in one.cmdline()[1] and "--spec" in one.cmdline())
    assert not [mapped.path for mapped in driver.memory_maps() if "/pandas/" in mapped.path]


def test_asked_to_stop_it_ends_with_0_and_keeps_the_rows_of_the_interval_it_was_in(link: Link) -> None:
    link.produce(1000)
    link.publish(slots=1)
    link.submit(ledger_seconds=3600)
    link.until(lambda: link.copied() == 1000, "everything is copied")
    link.until(link.slot_process, "Spark runs the slot")
    link.launcher.stop(link.name, grace_seconds=60)

    assert link.application().state is State.FINISHED
    assert sum(row["records"] for row in link.ledger()) == 1000
    assert not link.processes()
    assert not any(Path(link.spec.checkpoint_dir).iterdir())


def test_a_standby_goes_on_where_everything_of_the_first_application_was_killed(link: Link) -> None:
    link.produce(1000)
    link.publish(slots=1)
    link.submit(ledger_seconds=3600)
    link.until(lambda: link.copied() == 1000, "everything is copied")
    spec = link.folder / "standby.json"
    link.spec.model_copy(update={"standby": True}).write(spec)
    standby = f"{link.name}.standby"
    link.launcher.submit(standby, spec, link.spark)
    try:
        eventually(lambda: link.launcher.state(standby).state is State.RUNNING, what="it stands by", within_seconds=180)
        link.produce(1000)
        link.until(lambda: link.copied() == 2000, "by the first one")
        link.kill_everything()
        link.produce(1000)
        eventually(lambda: link.copied() == 3000, what="taken over", within_seconds=180)
        link.publish(slots=1, stopped=True)
        eventually(lambda: not link.launcher.state(standby).state.alive, what="the end", within_seconds=180)
        assert link.launcher.state(standby).state is State.FINISHED
        standby_log = link.launcher.log_tail(link.launcher.state(standby))
    finally:
        link.launcher.stop(standby, grace_seconds=0.0)
    reported = [row for row in link.ledger() if row["state"] != "unreported" and row["sequence_from"] >= 500]
    assert sum(row["records"] for row in reported) == 1000, standby_log


def test_a_plan_that_says_stopped_ends_it_with_0(link: Link) -> None:
    link.publish(slots=1)
    link.submit(ledger_seconds=3600)
    link.until_running()
    link.publish(slots=1, stopped=True)

    assert link.until_ended().state is State.FINISHED


def test_another_number_of_slots_ends_those_that_run_at_once_and_starts_as_many(link: Link) -> None:
    link.produce(1000)
    link.publish(slots=1)
    link.submit(slots=2, ledger_seconds=3600)
    link.until(lambda: link.copied() == 1000, "everything is copied")
    link.publish(slots=2)
    link.produce(1000)
    link.until(lambda: link.copied() == 2000, "both slots copy")
    link.launcher.stop(link.name, grace_seconds=60)

    assert {row["slot"] for row in link.ledger() if row["records"]} == {0, 1}
    link.assert_ledger_is_whole()


def test_a_plan_with_more_slots_than_cores_ends_it_to_be_submitted_again(link: Link) -> None:
    link.publish(slots=1)
    link.submit(slots=1, ledger_seconds=3600)
    link.until_running()
    link.publish(slots=2)
    ended = link.until_ended()

    assert ended.exit_code == EXIT_NEEDS_MORE_CORES
    assert "needs 2 cores, has 1; resubmit" in link.launcher.cause(ended)


def test_more_slots_than_this_machine_has_cores_are_refused_with_both_numbers(link: Link) -> None:
    cores = len(os.sched_getaffinity(0))
    with pytest.raises(
        SetupError, match=f"needs {cores + 1} cores for its {cores + 1} slots, this machine has {cores}"
    ):
        link.submit(slots=cores + 1)
    assert link.launcher.list() == ()


def test_without_its_checkpoint_it_loses_nothing_and_its_ledger_goes_on(link: Link) -> None:
    link.produce(1000)
    link.publish(slots=1)
    link.submit(ledger_seconds=2)
    link.until(lambda: sum(row["records"] for row in link.ledger()) == 1000, "the first ones are in the ledger")
    link.kill_everything()
    shutil.rmtree(link.spec.checkpoint_dir)
    link.produce(1000)
    link.submit()
    link.until(lambda: link.copied() == 2000, "everything is copied")
    link.until(link.slot_process, "Spark runs the slot")
    link.launcher.stop(link.name, grace_seconds=60)
    link.assert_ledger_is_whole()


@pytest.mark.core
def test_slots_that_are_killed_go_on_in_new_processes_and_the_ledger_tells_of_every_record(link: Link) -> None:
    """By default Spark ends the application when a slot fails for the fourth time in all its life."""
    link.publish(slots=2)
    application = link.submit(slots=2, ledger_seconds=2)
    link.until(lambda: len(link.ledger()) >= link.partitions, "the slots have said where they begin")
    for turn in range(8):  # four times each slot, since the older process is the other slot's
        link.produce(1000)
        link.until(lambda turn=turn: link.copied() >= 2000 * turn + 1000, f"copied in turn {turn}")
        link.until(lambda: len(link.slot_processes()) == 2, "both slots run")
        link.produce(1000)  # of which it may copy some and not live to tell
        min(link.slot_processes(), key=lambda process: process.create_time()).kill()
    told = "all records are in the ledger"
    link.until(lambda: sum(row["records"] for row in link.ledger()) >= 16_000, told)
    assert link.application().id == application.id
    assert link.application().state is State.RUNNING
    link.launcher.stop(link.name, grace_seconds=60)
    link.assert_ledger_is_whole()


def test_a_slot_that_fails_again_and_again_ends_it_and_says_why(link: Link) -> None:
    link.publish(slots=1)
    link.submit(ledger_seconds=3600)
    for _ in range(5):
        link.until(lambda: not link.application().state.alive or link.slot_process(), "the slot runs")
        if (slot := link.slot_process()) is not None:
            slot.kill()
            slot.wait(30)
    ended = link.until_ended()
    assert ended.exit_code == EXIT_FAILED
    assert "slot 0 failed 5 times within 10 minutes, the last time: " in link.launcher.cause(ended)


@pytest.mark.parametrize("victim", [pytest.param("driver", marks=pytest.mark.core), "jvm"])
def test_killed_it_leaves_nothing_behind_and_says_so(link: Link, victim: str) -> None:
    link.produce(1000)
    link.publish(slots=1)
    link.submit(ledger_seconds=3600)
    link.until(lambda: link.copied() == 1000, "everything is copied")
    (link.driver_process() if victim == "driver" else link.jvm_process()).kill()
    ended = link.until_ended()

    assert ended.state is State.DEAD
    assert "SIGKILL" in link.launcher.cause(ended)
    assert not link.processes()


def test_its_slots_end_when_spark_s_side_of_them_is_gone(link: Link) -> None:
    link.publish(slots=1)
    link.submit(ledger_seconds=3600)
    link.until(lambda: link.slot_process(), "the slot runs")
    slot = link.slot_process()
    daemon = slot.parent()
    assert daemon is not None
    daemon.kill()

    eventually(lambda: _is_gone(slot), what="the orphaned slot has ended")
    link.produce(1000)
    link.until(lambda: link.copied() == 1000, "another process runs it")


def test_two_of_one_spec_run_side_by_side(link: Link, tmp_path: Path) -> None:
    link.produce(1000)
    link.publish(slots=1)
    link.submit(ledger_seconds=2)
    other = LocalLauncher(tmp_path / "other applications")
    other.submit(link.name, link.spec_path, link.spark)
    try:
        link.until(lambda: len({row["application"] for row in link.ledger()}) == 2, "both have rows in the ledger")
        link.until(lambda: link.copied() == 1000, "everything is copied")
    finally:
        other.stop(link.name, grace_seconds=60)
    link.launcher.stop(link.name, grace_seconds=60)

    assert link.copied() == 1000
    assert link.application().state is State.FINISHED


def test_tied_to_a_process_it_ends_with_it(link: Link, tmp_path: Path) -> None:
    link.publish(slots=1)
    holder = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    link.launcher = LocalLauncher(tmp_path / "applications", parent_pid=holder.pid)
    link.submit(ledger_seconds=3600)
    link.until_running()
    holder.kill()
    holder.communicate()

    assert link.until_ended().state is State.FINISHED


def test_what_it_cannot_go_on_without_is_the_last_line_of_its_log(link: Link) -> None:
    link.publish(slots=1)
    Path(link.spec.ledger_dir).write_text("a file where the ledger's folder should be")
    link.submit(ledger_seconds=1)
    ended = link.until_ended(within_seconds=120)

    assert ended.exit_code == EXIT_FAILED
    assert f"ledger {link.spec.ledger_dir}" in link.launcher.cause(ended)
    assert "Parent path is not a directory" in link.launcher.cause(ended)
    assert link.log().splitlines()[-1].startswith("strait: ")


def test_a_spec_of_another_version_is_refused_in_one_line(link: Link) -> None:
    link.submit()
    spec = Path(link.application().log).with_name("spec.json")
    spec.write_text(spec.read_text().replace('"slots"', '"slotz"'))
    ended = link.until_ended()

    assert ended.exit_code == EXIT_CONFIG
    assert "slotz" in link.launcher.cause(ended)


def _is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
