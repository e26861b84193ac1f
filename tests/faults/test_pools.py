"""A pool of many links whose tasks are killed, while one source is dead and one link is broken."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.soak.pools import kill_tasks, make_links

pytestmark = [pytest.mark.broker, pytest.mark.timeout(900)]


def test_twenty_links_a_dead_source_and_a_broken_link_while_tasks_are_killed(
    clusters: Any, topic_name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = make_links(clusters.source, clusters.destination, tmp_path, 22, f"pool-{topic_name[-12:]}")
    assert len(kill_tasks(tmp_path, links, kills=4, seed=5, say=saying(capsys))) == 4


def saying(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def say(line: str) -> None:
        with capsys.disabled():
            print(line)  # noqa: T201

    return say
