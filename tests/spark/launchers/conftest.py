"""A site for each launcher, started once for each module, and links that run there."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.kubernetes.site import KubernetesSite
from support.links.links import Link, link_of
from support.spark.sites import LocalSite, Site, StandaloneSite, YarnSite, started

SITES: dict[str, Callable[[Path], Site]] = {
    "local": LocalSite,
    "standalone": StandaloneSite,
    "yarn": YarnSite,
    "kubernetes": KubernetesSite,
}

CHOSEN = os.environ.get("STRAIT_SITES", "local standalone yarn").split()
"""Those that need more than pip installs have a make target of their own."""


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.core if name == "local" else ()) for name in CHOSEN]
)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """See support.spark.sites. Each is ended before the next one starts."""
    with started(SITES[request.param](tmp_path_factory.mktemp(request.param))) as site:
        yield site


@pytest.fixture
def link(site: Site, clusters: Any, topic_name: str) -> Iterator[Link]:
    """Its topics are there, its plan is not. Its application is ended after the test."""
    name = topic_name.replace(".", "-").replace("[", "-").replace("]", "")[-50:].strip("-")
    launcher = site.launcher()
    link = link_of(name, clusters, site.folder, launcher, spark=site.spark)
    yield link
    launcher.stop(name, grace_seconds=0.0)
