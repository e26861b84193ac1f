"""A link of each test's own, and its application run by the real launcher."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strait.launch.local import LocalLauncher
from support.links.links import Link, link_of
from support.spark.standalone import Standalone


@pytest.fixture
def link(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Link]:
    """Its topics are there, its plan is not. Its application is ended after the test."""
    name = topic_name.replace(".", "-")[-60:]
    launcher = LocalLauncher(tmp_path / "applications")
    link = link_of(name, clusters, tmp_path, launcher)
    yield link
    launcher.stop(name, grace_seconds=0.0)


@pytest.fixture
def standalone_master(tmp_path: Path) -> Iterator[str]:
    """The URL of a Spark Standalone master with one worker of one core."""
    cluster = Standalone(tmp_path / "standalone", workers=1, cores=1)
    try:
        cluster.start()
        yield cluster.url
    finally:
        cluster.stop()
