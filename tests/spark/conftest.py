"""A link of each test's own, and its application run by the real launcher."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strait.launch.local import LocalLauncher
from strait.spec import AppSpec
from support.links import GROUP, Link


@pytest.fixture
def link(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[Link]:
    """Its topics are there, its plan is not. Its application is ended after the test."""
    name = topic_name.replace(".", "-")[-60:]
    spec = AppSpec(
        link=name,
        group=GROUP,
        source_name="source",
        source=clusters.source.client_properties,
        destination_name="destination",
        destination=clusters.destination.client_properties,
        slots=1,
        slot_memory_bytes=16 << 20,
        epoch_seconds=300,
        ledger_dir=str(tmp_path / "ledger"),
        checkpoint_dir=str(tmp_path / "checkpoint"),
    )
    launcher = LocalLauncher(tmp_path / "applications")
    link = Link(name, clusters.source, clusters.destination, spec, tmp_path, launcher)
    link.make_topics()
    yield link
    launcher.stop(name, grace_seconds=0.0)
