"""The package, installed into an environment of its own outside of any checkout, as a user types its commands."""

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.fixtures.waiting import eventually
from support.fixtures.wheel import Installed, install
from support.kafka.records import assert_equal, read_all
from support.kafka.topics import create, exists, produce

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

RECORDS = 1000
TESTS_OWN = {"pytest", "ruff", "mypy", "playwright", "hypothesis", "import-linter"}
OPTIONAL = {"apache-airflow", "kubernetes", "aws-msk-iam-sasl-signer-python"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def topic(installed: Installed, clusters: Any, topic_name: str) -> str:
    """A topic with records, of the only link of `links.yaml`."""
    both = {"a": clusters.source.client_properties, "b": clusters.destination.client_properties}
    link = {"source": "a", "destination": "b", "topics": {"include": [topic_name]}}
    (installed.folder / "links.yaml").write_text(yaml.safe_dump({"clusters": both, "links": {"a-to-b": link}}))
    create(clusters.source, topic_name, 1)
    produce(clusters.source, topic_name, RECORDS)
    return topic_name


def test_it_needs_neither_the_tests_tools_nor_airflow(installed: Installed):
    found = importlib.metadata.distributions(path=[str(*installed.bin.parent.glob("lib/python*/site-packages"))])
    names = {one.metadata["Name"].lower() for one in found}
    assert "pyspark" in names
    assert not names & (TESTS_OWN | OPTIONAL)


def test_validate_plan_and_run_replicate_outside_of_a_checkout(installed: Installed, clusters: Any, topic: str):
    assert "valid" in installed.run("validate").stdout
    planned = installed.run("plan")
    assert planned.returncode == 0, planned.stderr
    assert topic in planned.stdout
    log = installed.folder / "run.log"
    with log.open("w") as output:
        run = subprocess.Popen(
            [installed.strait, "run"], cwd=installed.folder, env=installed.environment, stdout=output, stderr=output
        )
    try:

        def replicated() -> bool:
            assert run.poll() is None, log.read_text()
            return (
                exists(clusters.destination, topic)
                and sum(map(len, read_all(clusters.destination, topic, 1))) == RECORDS
            )

        eventually(replicated, what=f"{RECORDS} records on the destination", within_seconds=300)
        eventually(lambda: _states(installed) == {"running"}, what="Spark runs", within_seconds=240)
    finally:
        run.terminate()
        run.wait(120)
    assert run.returncode == 0, log.read_text()
    assert_equal(*(read_all(cluster, topic, 1) for cluster in (clusters.source, clusters.destination)))


def test_an_archive_for_a_cluster_needs_no_checkout(installed: Installed):
    tools = os.pathsep.join([installed.environment["PATH"], str(Path(sys.executable).parent)])
    archive = installed.folder / "package.tar.gz"
    made = subprocess.run(
        [installed.bin / "python", "-m", "strait.launch.package", archive],
        cwd=installed.folder, env=installed.environment | {"PATH": tools}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    with tarfile.open(archive) as tar:
        members = {member.name: member for member in tar}
    assert {
        "bin/python",
        "replicate.py",
        "package.json",
        "packages/strait/engine/slot.py",
        "packages/kafka/__init__.py",
    } <= set(members)
    assert not [name for name in members if "__pycache__" in name]
    assert {(member.mtime, member.uid, member.uname) for member in members.values()} == {(315532800, 0, "")}
    assert members["bin/python"].mode == 0o755


def _states(installed: Installed) -> set[str]:
    """Those of the newest submissions; `submitted` while a head start replicates."""
    found = json.loads(installed.run("applications", "-o", "json").stdout)["applications"]
    return {one["submissions"][0]["state"] for one in found}


def test_what_airflow_and_prometheus_read_is_in_the_package(installed: Installed):
    code = "import strait.config.home as home; print(home.shared())"
    shared = Path(
        subprocess.run(
            [installed.bin / "python", "-c", code],
            cwd=installed.folder,
            env=installed.environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    assert installed.bin.parent in shared.parents
    kept = ("dags/strait.py", "plugins/strait_plugin.py", "plugins/strait_airflow/page/static/page.js")
    assert [
        name
        for name in (*kept, "docs/monitoring/strait-alerts.yml", "docker/maintenance.sh")
        if not (shared / name).is_file()
    ] == []
