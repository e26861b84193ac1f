"""What an application reads at its start: one task group, or a pool. Secrets stay out of messages."""

from pathlib import Path

import pytest

from strait.config.app_spec import AppSpec, Placed, PoolSpec, Seat, parse_spec, read_spec
from strait.errors import ConfigError

ONE = AppSpec(
    link="l", group="default", source_name="a", source={"bootstrap.servers": "a:1", "sasl.password": "hidden"},
    destination_name="b", destination={"bootstrap.servers": "b:1"}, slots=2, slot_memory_bytes=1, ledger_seconds=1,
    ledger_dir="l", checkpoint_dir="c",
)  # fmt: skip
POOL = PoolSpec(
    pool="p", slots=2, slot_memory_bytes=1, checkpoint_dir="c", members=(ONE, ONE.model_copy(update={"link": "m"})),
    placement=(Placed(link="l", group="default", slot=1, task=0), Placed(link="gone", group="default", slot=0, task=0)),
)  # fmt: skip


@pytest.mark.parametrize("spec", [ONE, POOL])
def test_what_is_written_is_read(spec: AppSpec | PoolSpec, tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    spec.write(path)
    assert read_spec(path) == spec
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_task_runs_what_is_placed_in_it_of_the_members() -> None:
    assert POOL.hosted_by(0) == {Seat("l", "default", 1): ONE}
    assert POOL.hosted_by(1) == {}
    assert sorted(POOL.links) == ["l", "m"]
    assert [name for name, _ in POOL.clusters] == ["a", "b", "a", "b"]


def test_another_number_of_slots_and_another_budget_need_no_new_start() -> None:
    assert ONE.is_as(ONE.model_copy(update={"slots": 9, "slot_memory_bytes": 7}))
    assert not ONE.is_as(ONE.model_copy(update={"source": {"bootstrap.servers": "a:2"}}))


@pytest.mark.parametrize("spec", [ONE, POOL])
def test_a_spec_of_another_version_is_told_by_its_version_and_without_secrets(spec: AppSpec | PoolSpec) -> None:
    text = spec.model_copy(update={"strait": "9.9.9"}).model_dump_json().replace('"slots"', '"slotz"').encode()
    with pytest.raises(ConfigError, match=r"9\.9\.9") as error:
        parse_spec(text, "it")
    assert "hidden" not in str(error.value)
