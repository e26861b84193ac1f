"""`make test` runs each guarantee and the main stories, `make test-all` everything, and the longest files start first."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import durations
from support.checks import each
from support.fixtures import tiers

PROJECT = Path(__file__).parents[2]
OTHERS = [path for path in (PROJECT / "tests").rglob("test_*.py") if not path.is_relative_to(PROJECT / "tests/unit")]
README = (PROJECT / "tests/README.md").read_text(encoding="utf-8")


def collected(*options: str) -> list[str]:
    """The node IDs in the order in which they run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return [line for line in done.stdout.splitlines() if "::" in line]


def functions(nodes: list[str]) -> set[str]:
    return {node.partition("::")[2].partition("[")[0] for node in nodes}


@pytest.mark.core
def test_each_claim_has_a_test_with_every_change() -> None:
    assert len(tiers.claims()) > 15
    assert [claim for claim, (first, _) in tiers.claims().items() if not first] == []


def test_the_tier_is_what_guarantees_name_and_what_is_marked() -> None:
    first = collected("--tier", "first", "tests/broker/test_engine_losses.py", "tests/broker/test_names.py")
    assert functions(first) == {
        *(
            "test_retention_that_overtakes_the_copy",
            "test_a_source_made_anew_is_copied_behind_what_was_copied_of_the_old_one",
        ),
        *(
            "test_among_foreign_records_the_copy_stays_whole_and_the_map_exact",
            "test_a_stranger_halts_the_copy_by_default",
        ),
        "test_among_foreign_records_by_design_nothing_is_noted_and_nothing_repeated",
        "test_copies_are_created_and_filled_under_their_names",
    }


def test_of_a_test_with_marked_parameters_only_those_run() -> None:
    file = "tests/faults/test_late_requests.py"
    zombies = "test_zombie_requests_add_nothing_twice_and_nothing_out_of_order"
    assert collected("--tier", "first", file) == [f"{file}::{zombies}[21-2]"]
    assert len([node for node in collected(file) if zombies in node]) == 3


def test_a_name_that_is_also_one_of_older_brokers_tests_is_not_run_there() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "--tier", "first", "tests/compat"],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout


@each(OTHERS, lambda path: path.relative_to(PROJECT / "tests"))
def test_each_file_that_is_not_whole_in_the_first_tier_has_its_reason(path: Path) -> str:
    whole = "pytest.mark.core" in "".join(
        re.findall(r"^pytestmark = .*$", path.read_text(encoding="utf-8"), re.MULTILINE)
    )
    names = set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    marked = path.read_text(encoding="utf-8").count("@pytest.mark.core\n")
    place = path.parent.relative_to(PROJECT / "tests").as_posix()
    named = re.search(rf"\b{path.stem}\b|(?<![\w/]){place}(/(?!\w)|`)|make {place}`", README)
    return "" if whole or named or marked == len(names) or names <= tiers.claimed() else "is not in tests/README.md"


def test_long_files_start_first_and_one_airflow_is_one_workers() -> None:
    seconds = json.loads((PROJECT / "tests/durations.json").read_text(encoding="utf-8"))
    files = list(dict.fromkeys(node.partition("::")[0] for node in collected("tests/broker", "tests/faults")))
    taken = {file: sum(value for name, value in seconds.items() if name.startswith(f"{file}::")) for file in files}
    assert [taken[file] for file in files[:5]] == sorted(taken.values(), reverse=True)[:5]
    shared = [index for index, node in enumerate(collected("tests/e2e")) if node.startswith("tests/e2e/airflow/")]
    assert shared == list(range(shared[0], shared[0] + len(shared)))


def test_durations_are_those_of_the_newest_report_without_what_is_short_or_gone(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    cases = [
        ("tests.suite.test_tiers", "test_b[1]", 2.04),
        ("tests.gone", "test_c", 9.0),
        ("tests.conftest", "t", 0.1),
    ]
    report.write_text(
        "<testsuites><testsuite>"
        + "".join(f'<testcase classname="{module}" name="{name}" time="{time}"/>' for module, name, time in cases)
        + "</testsuite></testsuites>"
    )
    here = "tests/suite/test_tiers.py"
    known = {f"{here}::test_a": 7.0, f"{here}::test_b[1]": 5.0}
    assert durations.merged(known, durations.reported(report)) == {f"{here}::test_a": 7.0, f"{here}::test_b[1]": 2.0}


def test_one_test_names_everything_that_breaks_a_rule() -> None:
    @each([1, 2, 3, 4], lambda number: f"number {number}")
    def no_even_number(number: int) -> list[str]:
        return [] if number % 2 else ["even"]

    with pytest.raises(AssertionError, match=r"number 2.*number 4"):
        no_even_number()
    with pytest.raises(AssertionError, match="nothing to check"):
        each([])(lambda _: "")()
