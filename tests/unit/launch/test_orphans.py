"""Applications that no link has any more, also on a cluster that no other link uses."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from strait.config.app_spec import AppSpec, PoolSpec, Spec
from strait.config.links import LinksFile, Spark, load
from strait.control.supervision import Supervisor
from strait.launch import launchers, submission
from strait.launch.base import Application, State
from strait.launch.submission import Submission
from strait.state.link_handle import ConfiguredLink
from strait_airflow import pools

ADDRESS = {"bootstrap.servers": "a:1"}
YARN = Spark.model_validate(
    {
        "master": "yarn",
        "yarn": {
            "hadoop_conf_dir": "/conf",
            "resource_manager": ["http://rm:8088"],
            "tag": "t",
            "directory": "hdfs://n/d",
        },
    }
)
POOL = "strait-pool-main"


class Cluster:
    """The cluster of earlier settings, in which each application runs until it is stopped."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.away = False
        self.asked: list[str] = []

    def state(self, name: str) -> Application | None:
        self.asked.append(name)
        if self.away:
            return Application(name, "", State.UNKNOWN, "", 0)
        return Application(name, "1", State.RUNNING, "log", 1) if name in self.running else None

    def stop(self, name: str) -> None:
        self.running.remove(name)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cluster:
    one, right = Cluster(), launchers.launcher_for
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(tmp_path / "links.yaml"))

    def launcher_for(spark: Spark, directory: Path, **more: Any) -> Any:
        return one if spark.master == "yarn" else right(spark, directory, **more)

    monkeypatch.setattr(launchers, "launcher_for", launcher_for)
    return one


def submitted(cluster: Cluster, folder: Path, name: str, spec: Spec | None) -> None:
    """Record a submission to the cluster, which runs it; ``spec`` None: it was not kept here."""
    kept = Submission(folder / "home/applications" / name / "1000")
    kept.folder.mkdir(parents=True)
    submission.write_place(kept, YARN)
    if spec is not None:
        spec.write(kept.spec)
    cluster.running.add(name)


def app_spec(link: str) -> AppSpec:
    return AppSpec(
        link=link, group="default", source_name="a", source=ADDRESS, destination_name="b", destination=ADDRESS,
        slots=1, slot_memory_bytes=1, ledger_seconds=60, ledger_dir="/l", checkpoint_dir="/c",
    )  # fmt: skip


def pool_spec(*links: str) -> PoolSpec:
    members = tuple(map(app_spec, links))
    return PoolSpec(pool="main", slots=1, slot_memory_bytes=1, checkpoint_dir="/c", members=members)


def write(folder: Path, **of: str | None) -> LinksFile:
    """The links file: link -> its pool. All of them run on this host."""
    raw: dict[str, Any] = {
        "clusters": {"a": ADDRESS, "b": ADDRESS},
        "links": {
            name: {"source": "a", "destination": "b"} | ({"pool": pool} if pool else {}) for name, pool in of.items()
        },
    }
    if any(of.values()):
        raw["pools"] = {"main": {"slots": 1}}
    (folder / "links.yaml").write_text(yaml.safe_dump(raw))
    return load(folder / "links.yaml")


def end_orphans(file: LinksFile, folder: Path) -> list[str]:
    links = list(file.links)
    supervise = Supervisor(ConfiguredLink.of(file, links[0]), folder / "home")
    return supervise.end_orphans(links, pools.in_use())


def test_those_of_a_deleted_link_are_ended_where_they_were_submitted_to(cluster: Cluster, tmp_path: Path) -> None:
    file = write(tmp_path, one=None)
    for link in ("one", "gone"):
        submitted(cluster, tmp_path, f"strait-{link}-default", app_spec(link))
    submitted(cluster, tmp_path, "strait-lost-default", None)
    cluster.away = True
    assert end_orphans(file, tmp_path) == []
    cluster.away = False
    assert end_orphans(file, tmp_path) == [
        "strait-gone-default: ended on yarn, no link has it",
        "strait-lost-default: ended on yarn, no link has it",
    ]
    assert cluster.running == {"strait-one-default"}
    asked = list(cluster.asked)
    assert end_orphans(file, tmp_path) == []
    assert cluster.asked == asked, "they have ended"


def test_that_of_a_pool_is_one_only_if_no_link_is_in_the_pool(cluster: Cluster, tmp_path: Path) -> None:
    submitted(cluster, tmp_path, POOL, None)
    submitted(cluster, tmp_path, f"{POOL}.standby", pool_spec("one"))
    assert end_orphans(write(tmp_path, one="main"), tmp_path) == []
    assert len(end_orphans(write(tmp_path, one=None), tmp_path)) == 2
    assert not cluster.running


def test_that_of_a_dissolved_pool_is_ended_and_until_then_looked_for(cluster: Cluster, tmp_path: Path) -> None:
    """Its link runs on this host now."""
    file, kept = write(tmp_path, one=None), tmp_path / "home/pools/main.json"
    submitted(cluster, tmp_path, POOL, pool_spec("one"))
    pool_spec("one").write(kept)
    cluster.away = True
    pools.tidy(file, "one")
    assert PoolSpec.read(kept).members
    cluster.away = False
    pools.tidy(file, "one")
    assert not cluster.running
    assert not PoolSpec.read(kept).members


def test_that_of_a_pool_whose_last_link_stopped_is_ended_there(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, one="main")
    submitted(cluster, tmp_path, POOL, pool_spec("one"))
    pool_spec("one").write(tmp_path / "home/pools/main.json")
    assert pools.due(file, "one", [], {}) == ([], {})
    assert not cluster.running
