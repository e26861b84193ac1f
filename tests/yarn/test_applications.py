"""An application on a Hadoop cluster of real daemons, parts of which are killed, from a package in HDFS."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import strait
from strait.errors import LaunchError
from strait.launch.base import EXIT_FAILED, EXIT_NEEDS_MORE_CORES, State
from strait.launch.yarn.commands import Commands
from strait.launch.yarn.manager import ResourceManager
from support.fixtures.waiting import eventually
from support.links.links import Link
from support.spark.sites import YarnSite
from support.spark.yarn import SECRET

pytestmark = [pytest.mark.spark, pytest.mark.broker, pytest.mark.timeout(1800)]

KEPT_SECRET = {"spec.json", "__spark_conf__.properties"}
"""Names of the files that hold secrets, as docs/how-to/run-on-yarn.md has it."""


def test_copying_goes_on_without_an_executor_the_resource_manager_or_the_drivers_node(
    site: YarnSite, link: Link
) -> None:
    def goes_on(records: int) -> None:
        link.produce(1000)
        eventually(lambda: link.copied() == records, what=f"{records} records are copied", within_seconds=300)

    cluster, name = site.cluster, link.name
    link.publish(slots=1)
    link.submit()
    goes_on(1000)
    link.until_running()
    first = link.application()
    everything = site.processes(name)
    pythons = [one for one in everything if one.name().startswith("python")]
    assert pythons
    own = str(Path(strait.__file__).parents[1])
    paths = [_told(one)[1].get("PYTHONPATH", "") for one in pythons]
    assert all("environment/packages" in path and own not in path.split(":") for path in paths), paths
    assert not [line for one in everything for line in (*_told(one)[0], *_told(one)[1].values()) if SECRET in line]
    assert SECRET not in str(cluster.ask(f"cluster/apps/{first.id}"))
    holders = {path.name for path in _files_with_the_secret(cluster.folder)}
    assert holders == KEPT_SECRET
    ledger = Commands(site.yarn).hadoop_fs
    link.until(
        lambda: b".parquet" in ledger("ledger", "-ls", "-R", link.spec.ledger_dir).output,
        "an interval is in the ledger",
    )

    killed = site.executor(name)
    killed.kill()
    # Its slot may copy on for a while without it.
    eventually(lambda: _slots_of_another(site, name, killed), what="another executor has the slot", within_seconds=300)
    goes_on(2000)

    driver = site.driver(name).pid
    cluster.manager.kill()
    try:
        assert link.application().state is State.UNKNOWN
        with pytest.raises(LaunchError, match="Connection refused"):
            link.launcher.stop(name)
        goes_on(3000)
    finally:
        cluster.manager.start()
    eventually(lambda: link.application().state is State.RUNNING, what="it is found again", within_seconds=180)
    assert (site.driver(name).pid, link.application().id) == (driver, first.id)

    cluster.until_registered(2)
    lost = cluster.node_of(site.driver(name))
    cluster.lose_node(lost)
    goes_on(4000)
    eventually(lambda: _runs_on_another(site, name, lost), what="another node has the driver", within_seconds=300)
    eventually(lambda: link.application().state is State.RUNNING, what="the new driver is found", within_seconds=180)
    again = link.application()
    assert again.id == first.id and again.log != first.log
    assert len(link.launcher.history(name)) == 1
    assert link.launcher.log_tail(again)
    cluster.nodes[lost].start()
    cluster.until_registered(2)

    link.launcher.stop(name, grace_seconds=60)
    ended = link.application()
    assert (ended.state, ended.exit_code) == (State.FINISHED, 0)
    eventually(lambda: not site.left_behind(name), what=lambda: "\n".join(site.left_behind(name)), within_seconds=60)
    link.compare()


def test_what_was_killed_by_others_is_removed_when_it_is_submitted_again(site: YarnSite, link: Link) -> None:
    link.publish(slots=1)
    link.submit()
    link.until_running()
    manager = ResourceManager(lambda: [site.cluster.manager.url], site.yarn.tag)
    manager.kill(manager.of_name(link.name)[0])
    killed = link.until_ended()
    assert (killed.state, killed.exit_code) == (State.DEAD, None)
    assert "was killed by user" in link.launcher.cause(killed)
    assert killed.id in _staged(site)

    again = link.submit()
    assert again.id != killed.id
    assert again.id in _staged(site) and killed.id not in _staged(site)
    link.produce(1000)
    link.until(lambda: link.copied() == 1000, "its executor is there")
    link.publish(slots=2)
    ended = link.until_ended()
    assert (ended.id, ended.exit_code) == (again.id, EXIT_NEEDS_MORE_CORES)
    assert "needs 2 cores, has 1; resubmit" in link.launcher.cause(ended)
    assert again.id not in _staged(site)


def test_one_that_fails_each_time_is_started_as_often_as_it_may_and_says_why(site: YarnSite, link: Link) -> None:
    link.spark = link.spark.model_copy(update={"conf": {"spark.yarn.maxAppAttempts": "2"}})
    link.publish(slots=1)
    link.submit(ledger_dir="file:///proc/nowhere", ledger_seconds=1)
    ended = link.until_ended(within_seconds=400)
    assert (ended.state, ended.exit_code) == (State.DEAD, EXIT_FAILED)
    assert "exit code 1: ledger file:///proc/nowhere/" in link.launcher.cause(ended)
    attempts = site.cluster.ask(f"cluster/apps/{ended.id}/appattempts")["appAttempts"]["appAttempt"]
    assert len(attempts) == 2
    assert ended.id not in _staged(site)


def _slots_of_another(site: YarnSite, name: str, executor: psutil.Process) -> list[psutil.Process]:
    """The Python processes of an executor that is not this one; none while there is no other."""
    with suppress(StopIteration, psutil.Error):
        other = site.executor(name)
        return other.children(recursive=True) if other.pid != executor.pid else []
    return []


def _runs_on_another(site: YarnSite, name: str, node: int) -> bool:
    with suppress(StopIteration, psutil.Error):
        return site.cluster.node_of(site.driver(name)) != node
    return False


def _staged(site: YarnSite) -> set[str]:
    return {path.rpartition("/")[2] for path in site.staged()}


def _told(process: psutil.Process) -> tuple[list[str], dict[str, str]]:
    try:
        return process.cmdline(), process.environ()
    except psutil.Error:
        return [], {"PYTHONPATH": "environment/packages"}  # it has ended meanwhile


def _files_with_the_secret(folder: Path) -> Iterator[Path]:
    """Among all that the cluster keeps on this machine, but for HDFS's blocks, packages and jars."""
    for path in folder.rglob("*"):
        if not path.is_file() or {"blocks", "environment"} & set(path.parts) or path.suffix in (".gz", ".jar", ".zip"):
            continue
        with suppress(FileNotFoundError):  # of a container that has ended meanwhile
            if SECRET.encode() in path.read_bytes():
                yield path
