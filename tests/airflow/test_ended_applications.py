"""When an application that is not there is a problem, as the watch of a link sees it."""

from types import SimpleNamespace

import pytest

from strait.launch.base import Application, State
from strait_airflow.watching import SUBMITTED_WITHIN_SECONDS, _Clusters

pytestmark = pytest.mark.core


class Seen:
    """A watch of one task group, whose application is ``found``."""

    def __init__(self) -> None:
        self.found: Application | None = None
        self._clusters = clusters = object.__new__(_Clusters)
        spark = SimpleNamespace(deploy_mode="client")
        clusters._file = SimpleNamespace(links={"l": SimpleNamespace(spark=spark, pool=None)})
        clusters._link = "l"
        clusters._hearing = SimpleNamespace(silent=lambda *_: ())
        clusters._supervisor = SimpleNamespace(has_standby=lambda _: False)
        clusters._launcher = SimpleNamespace(state=lambda _: self.found)
        clusters._missing_since, clusters._started_at = {}, {}

    def troubles(self, now: float) -> list[str]:
        plan = SimpleNamespace(group="default", stopped=False)
        return [trouble.detail for trouble in self._clusters._look_at(plan, now)]


def application(state: State, exit_code: int | None = None) -> Application:
    return Application("strait-l-default", "7", state, "", 0, exit_code)


@pytest.mark.parametrize(
    ("found", "detail"),
    [
        (None, "application strait-l-default was never submitted"),
        (application(State.DEAD, 0), "application 7 ended with exit code 0"),
    ],
)
def test_one_that_may_be_about_to_be_submitted_is_no_trouble_for_a_while(
    found: Application | None, detail: str
) -> None:
    """A restart asks an application to end, and submits it again."""
    seen = Seen()
    seen.found = found
    assert seen.troubles(100.0) == seen.troubles(99.9 + SUBMITTED_WITHIN_SECONDS) == []
    assert seen.troubles(100.0 + SUBMITTED_WITHIN_SECONDS) == [detail]
    seen.found = application(State.RUNNING)
    assert seen.troubles(120.0) == []
    seen.found = found
    assert seen.troubles(130.0) == []


@pytest.mark.parametrize("exit_code", [None, 1, 137])
def test_one_that_failed_is_trouble_at_once(exit_code: int | None) -> None:
    seen = Seen()
    seen.found = application(State.DEAD, exit_code)
    (detail,) = seen.troubles(100.0)
    assert detail.startswith("application 7 ended")
