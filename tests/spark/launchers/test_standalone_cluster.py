"""An application on a Spark Standalone cluster of real daemons, parts of which are killed, from a package."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import strait
from strait.errors import LaunchError, SetupError
from strait.launch.base import State
from strait.launch.package import build
from strait.launch.standalone.launcher import StandaloneLauncher
from support.fixtures.running import Running
from support.fixtures.waiting import eventually
from support.links.links import Link, link_of
from support.spark.sites import StandaloneSite, started

pytestmark = [pytest.mark.spark, pytest.mark.broker]

SECRET = "correct-horse-battery"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneSite]:
    with started(StandaloneSite(tmp_path_factory.mktemp("standalone"))) as site:
        yield site


@pytest.fixture(scope="module")
def package(site: StandaloneSite) -> Path:
    """What `make package` writes."""
    archive = site.folder / "package.tar.gz"
    build(archive)
    return archive


@pytest.fixture
def link(site: StandaloneSite, package: Path, clusters: Any, topic_name: str) -> Iterator[Link]:
    """Runs from the package. One of its Spark properties and one of its clusters' are secrets."""
    spark = site.spark.model_copy(update={"package": str(package), "conf": {"spark.strait.try": SECRET}})
    name, launcher = topic_name.replace(".", "-")[-50:], StandaloneLauncher(spark, site.folder / "applications")
    link = link_of(name, clusters, site.folder, launcher, spark=spark)
    link.spec = link.spec.model_copy(update={"source": {**link.spec.source, "sasl.password": SECRET}})
    yield link
    launcher.stop(name, grace_seconds=0.0)


def test_copying_goes_on_without_an_executor_the_master_or_the_drivers_worker(site: StandaloneSite, link: Link) -> None:
    def goes_on(records: int) -> None:
        link.produce(1000)
        link.until(lambda: link.copied() == records, "copying goes on")

    def executors() -> list[psutil.Process]:
        return [one.process for one in cluster.processes() if "CoarseGrainedExecutorBackend" in str(one.command)]

    def is_alive(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    def until_another(driver: int) -> None:
        eventually(lambda: driver not in (found := site.drivers(name)) and found, what="a driver on the other worker")

    cluster, name = site.cluster, link.name
    link.publish(slots=1)
    link.submit()
    goes_on(1000)
    link.until_running()
    first = link.application()
    everything = cluster.processes()
    pythons = [one for one in everything if one.name.startswith("python")]
    assert pythons
    assert [one.command for one in pythons if not _runs_from_the_package(one)] == []
    assert not [one.command for one in everything if SECRET in str((one.command, one.environment))]
    assert not [line for line in _written(cluster.folder) if SECRET in line]

    (executor,) = executors()
    workers = executor.children(recursive=True)
    executor.kill()
    eventually(lambda: not any(map(is_alive, workers)), what="its Python workers have ended with it")
    eventually(lambda: executors() and executors() != [executor], what="another executor")
    goes_on(2000)

    (driver,) = site.drivers(name)
    cluster.kill("master")
    assert link.application().state is State.UNKNOWN
    link.produce(1000)
    eventually(lambda: link.copied() == 3000, what="copying goes on without a master")
    cluster.start_master()
    link.until(lambda: link.application().state is State.RUNNING, "it is found again")
    assert (list(site.drivers(name)), link.application().id) == ([driver], first.id)

    lost = cluster.worker_of(site.drivers(name)[driver])
    cluster.until_workers(2)
    cluster.kill(lost)
    until_another(driver)
    link.until(lambda: link.application().state is State.RUNNING, "it is found under its new driver")
    goes_on(4000)
    again = link.application()
    assert again.id == first.id and again.log != first.log
    assert len(link.launcher.history(name)) == 1
    assert link.launcher.log_tail(again)
    cluster.start_worker(lost)
    cluster.until_workers(2)

    link.launcher.stop(name, grace_seconds=60)
    ended = link.application()
    assert (ended.state, ended.exit_code) == (State.FINISHED, 0)
    eventually(lambda: not site.left_behind(name), what=lambda: "\n".join(site.left_behind(name)), within_seconds=60)
    link.compare()


def test_what_cannot_be_submitted_is_refused_in_one_line_and_leaves_no_submission(
    site: StandaloneSite, link: Link
) -> None:
    with pytest.raises(SetupError, match=r"needs 10 cores for its 9 slots and its driver, .* has 4"):
        link.submit(slots=9)
    site.cluster.token_file.rename(site.cluster.token_file.with_suffix(".away"))
    try:
        with pytest.raises(LaunchError, match=r"submitting: .*token: No such file or directory .*`token_file`"):
            link.submit(slots=1)
    finally:
        site.cluster.token_file.with_suffix(".away").rename(site.cluster.token_file)
    anybody = link.spark.standalone.model_copy(update={"token_file": None})
    stranger = StandaloneLauncher(link.spark.model_copy(update={"standalone": anybody}), site.folder / "applications")
    with pytest.raises(LaunchError, match=r"submitting: .*refused: .*Authorization header is missing"):
        stranger.submit(link.name, link.spec_path, link.spark)
    assert link.launcher.history(link.name) == ()
    assert link.launcher.state(link.name) is None


def _runs_from_the_package(one: Running) -> bool:
    """Its own host's Python, and no library of this checkout."""
    path = one.environment.get("PYTHONPATH", "")
    return "environment/packages" in path and str(Path(strait.__file__).parents[1]) not in path.split(os.pathsep)


def _written(folder: Path) -> Iterator[str]:
    """What the cluster keeps in files: its logs, the recovery folder, working directories; not the package."""
    for path in folder.rglob("*"):
        if path.is_file() and "environment" not in path.parts and path.suffix != ".gz":
            yield path.read_bytes().decode("latin-1")
