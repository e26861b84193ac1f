"""A real API server with a node that runs pods as processes of this machine, and links whose applications run there.

These tests need root, for the node, and Go, for the API server: `make kubernetes` runs them.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.kubernetes.site import KubernetesSite
from support.links.links import Link, link_of
from support.spark.sites import started

collect_ignore_glob = [] if "kubernetes" in os.environ.get("STRAIT_SITES", "") else ["*"]

SECRET = "correct horse battery"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesSite]:
    """Shared by all tests: use an application of your own, which is stopped after the test."""
    with started(KubernetesSite(tmp_path_factory.mktemp("kubernetes"))) as site:
        yield site


@pytest.fixture
def link(site: KubernetesSite, clusters: Any, topic_name: str) -> Iterator[Link]:
    """Its topics are there, its plan is not."""
    name = re.sub(r"[^a-z0-9]+", "-", topic_name.lower())[-40:].strip("-")
    secret = clusters.destination.client_properties | {"sasl.password": SECRET}
    launcher = site.launcher()
    link = link_of(name, clusters, site.folder, launcher, spark=site.spark, destination=secret, ledger_seconds=3)
    yield link
    site.node.paused = False
    launcher.stop(name, grace_seconds=1.0)
