"""A Hadoop cluster of two nodes with HDFS, and links that run there, from a package. `make yarn` runs these tests."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from strait.launch.package import build
from strait.launch.yarn.commands import Commands
from strait.launch.yarn.launcher import YarnLauncher
from support.links.links import Link, link_of
from support.spark.sites import YarnSite, started
from support.spark.yarn import SECRET

collect_ignore_glob = [] if "yarn" in os.environ.get("STRAIT_SITES", "") else ["*"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnSite]:
    """Shared by all tests: use an application of your own, which is stopped after the test."""
    with started(YarnSite(tmp_path_factory.mktemp("yarn"), nodes=2, hdfs=True)) as site:
        yield site


@pytest.fixture(scope="session")
def package(site: YarnSite, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `make package` writes, in HDFS."""
    archive = tmp_path_factory.mktemp("package") / "strait.tar.gz"
    build(archive)
    there = f"{site.cluster.files}/strait.tar.gz"
    Commands(site.yarn).require_fs("uploading the package", "-put", str(archive), there)
    return there


@pytest.fixture
def link(site: YarnSite, package: str, clusters: Any, topic_name: str) -> Iterator[Link]:
    """Its topics are there, its plan is not. One of its Spark properties and one of its clusters' are secrets."""
    spark = site.spark.model_copy(update={"package": package, "conf": {"spark.strait.secret": SECRET}})
    name, launcher = topic_name.replace(".", "-")[-50:], YarnLauncher(spark, site.yarn, site.folder / "applications")
    link = link_of(name, clusters, site.folder, launcher, spark=spark)
    ledger, checkpoint = spark.directories(link.spec.ledger_dir, link.spec.checkpoint_dir)
    changes = {"ledger_dir": ledger, "checkpoint_dir": checkpoint, "ledger_seconds": 5}
    link.spec = link.spec.model_copy(update={"source": {**link.spec.source, "sasl.password": SECRET}, **changes})
    yield link
    launcher.stop(name, grace_seconds=0.0)
