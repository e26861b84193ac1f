"""What is copied while Spark starts, and who copies afterwards."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from strait.launch import processes
from strait.launch.base import State
from strait.launch.local import LocalLauncher
from strait.spark.head_start import take_over
from support.fixtures.waiting import eventually
from support.links.links import Link, is_head_start, link_of

pytestmark = pytest.mark.broker


@pytest.fixture
def spark_that_never_starts(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Link]:
    """A link of two slots whose `spark-submit` waits for ever."""
    spark_submit = tmp_path / "spark" / "bin" / "spark-submit"
    spark_submit.parent.mkdir(parents=True)
    spark_submit.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import time; time.sleep(3600)'\n")
    spark_submit.chmod(0o755)
    launcher = LocalLauncher(tmp_path / "applications", spark_submit=spark_submit)
    yield link_of(topic_name.replace(".", "-")[-60:], clusters, tmp_path, launcher, slots=2)
    processes.end(
        lambda: [one for some in processes.find(launcher.directory).values() for one in some], grace_seconds=0
    )


def head_starts(link: Link) -> list[psutil.Process]:
    return [one for one in link.processes() if is_head_start(one)]


@pytest.mark.core
def test_copying_begins_without_spark_and_ends_with_the_application(spark_that_never_starts: Link) -> None:
    link = spark_that_never_starts
    link.produce(1000)
    link.submit()  # before there is a plan, as `strait run` does
    link.publish(slots=2)
    link.until(lambda: link.copied() == 1000, "both slots copy")
    link.launcher.stop(link.name, grace_seconds=30)
    assert not link.processes()
    link.compare()


def test_each_slot_ends_once_spark_runs_it(spark_that_never_starts: Link) -> None:
    link = spark_that_never_starts
    link.publish(slots=2)
    application = link.submit()
    link.produce(1000)
    link.until(lambda: link.copied() == 1000, "both slots copy")
    spec = Path(application.log).with_name("spec.json")
    take_over(spec, 1)
    link.produce(1000)  # to partitions of both slots
    link.until(lambda: link.copied() == 1500, "the other slot goes on")
    assert len(head_starts(link)) == 1
    take_over(spec, 0)
    eventually(lambda: not head_starts(link), what="the other one has ended, too")
    assert link.copied() == 1500


def test_it_ends_with_what_has_started_it(spark_that_never_starts: Link) -> None:
    link = spark_that_never_starts
    link.publish(slots=2)
    link.submit()
    link.produce(1000)
    link.until(lambda: link.copied() == 1000, "both slots copy")
    shell = next(one for one in link.processes() if one.cmdline()[0] == "/bin/sh")
    shell.send_signal(signal.SIGKILL)
    eventually(lambda: not head_starts(link), what="no slot goes on alone")


@pytest.mark.spark
def test_under_load_spark_takes_over_and_no_record_is_missing_or_there_twice(link: Link) -> None:
    link.publish(slots=2)
    link.submit(slots=2)
    produced = 0
    while link.application().state is not State.RUNNING or head_starts(link):
        link.produce(100)
        produced += 100
    link.produce(1000)
    link.until(lambda: link.copied() == produced + 1000, "Spark's slots copy")
    link.compare()
