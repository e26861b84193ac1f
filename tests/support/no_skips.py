"""Pytest plugin: where ``CI`` is set, or with ``--no-skips``, a test that needs something real may not be skipped.

Such a skip would turn a broken machine into a green run.
"""

import os
from collections.abc import Generator

import pytest

REAL = ("broker", "spark", "airflow", "e2e")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips", action="store_true", help=f"a skipped test of {', '.join(REAL)} fails (always so in CI)"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    expected_failure = hasattr(report, "wasxfail")
    if report.skipped and not expected_failure and _forbidden(item.config) and any(map(item.get_closest_marker, REAL)):
        report.outcome = "failed"
        report.longrepr = f"skipped, which is not allowed here: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if report.skipped and _forbidden(collector.config):  # a whole module: it has no markers yet
        report.outcome = "failed"
        report.longrepr = f"skipped, which is not allowed here: {_reason(report.longrepr)}"
    return report


def _forbidden(config: pytest.Config) -> bool:
    return bool(config.getoption("--no-skips")) or os.environ.get("CI", "").lower() in ("1", "true")


def _reason(longrepr: object) -> str:
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
