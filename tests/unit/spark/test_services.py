"""The driver's work for the links of a pool: it begins when one joins, ends when it leaves, and a failure is its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from strait.config.app_spec import AppSpec, PoolSpec
from strait.errors import SetupError
from strait.spark import services
from strait.spark.services import served
from support.fixtures.waiting import eventually

RUNNING: list[str] = []
BROKEN: set[str] = set()


@contextmanager
def kept(_: Any, spec: AppSpec, application: str, head_start: str) -> Iterator[None]:
    if spec.link in BROKEN:
        raise SetupError("its directory cannot be created")
    RUNNING.append(f"ledger {spec.link} {spec.ledger_seconds}")
    yield
    RUNNING.remove(f"ledger {spec.link} {spec.ledger_seconds}")


@contextmanager
def in_sync(spec: AppSpec, application: str) -> Iterator[None]:
    RUNNING.append(f"groups {spec.link}")
    yield
    RUNNING.remove(f"groups {spec.link}")


@pytest.fixture(autouse=True)
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(services, "ledger_kept", kept)
    monkeypatch.setattr(services, "consumer_groups_in_sync", in_sync)
    monkeypatch.setattr(services, "LOOK_SECONDS", 0.02)
    RUNNING.clear()
    BROKEN.clear()
    yield
    assert RUNNING == [], "all of it has ended"


def member(link: str, ledger_seconds: int = 60) -> AppSpec:
    return AppSpec(
        link=link, group="default", source_name="a", source={}, destination_name="b", destination={}, slots=1,
        slot_memory_bytes=1, ledger_seconds=ledger_seconds, ledger_dir="/l", checkpoint_dir="/c",
    )  # fmt: skip


def pool(path: Path, *members: AppSpec) -> PoolSpec:
    spec = PoolSpec(pool="main", slots=1, slot_memory_bytes=1, checkpoint_dir="/c", members=members)
    spec.write(path)
    return spec


def until(*wanted: str) -> None:
    eventually(lambda: sorted(RUNNING) == sorted(wanted), what=lambda: f"{wanted}, not {RUNNING}")


def test_work_for_one_task_group_lasts_as_long_as_the_application(tmp_path: Path) -> None:
    with served(cast(Any, None), tmp_path / "spec.json", member("one"), "app"):
        assert sorted(RUNNING) == ["groups one", "ledger one 60"]


def test_links_of_a_pool_come_change_and_go(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    with served(cast(Any, None), path, pool(path, member("one")), "app"):
        until("ledger one 60", "groups one")
        pool(path, member("one"), member("two"))
        until("ledger one 60", "groups one", "ledger two 60", "groups two")
        pool(path, member("one", 90), member("two").model_copy(update={"slots": 5}))
        until("ledger one 90", "groups one", "ledger two 60", "groups two")
        pool(path, member("two"))
        until("ledger two 60", "groups two")


def test_one_whose_ledger_cannot_be_written_is_tried_again_and_keeps_no_other_from_its_work(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spec.json"
    BROKEN.add("one")
    with served(cast(Any, None), path, pool(path, member("one"), member("two")), "app"):
        until("ledger two 60", "groups two")
        eventually(lambda: "link one: its directory cannot be created" in caplog.text, what="its reason")
        BROKEN.clear()
        until("ledger one 60", "groups one", "ledger two 60", "groups two")
    assert caplog.text.count("its directory cannot be created") == 1
