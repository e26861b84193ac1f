"""Sensors for any DAG: wait until a link has replicated some data, or until it is healthy. They wait in the triggerer and
occupy no worker."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator

from strait_airflow.conditions import FAILED, REACHED, ConditionTrigger, condition_of
from strait_airflow.given import texts
from strait_airflow.page_address import PageButton, page_address
from strait_airflow.steps import quiet

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class _LinkSensor(BaseSensorOperator):
    """Checks once in the worker, then in the triggerer every ``poke_interval`` seconds, for up to ``timeout``."""

    template_fields: Sequence[str] = ("link", "topics")
    operator_extra_links = (PageButton(),)

    def __init__(
        self, *, link: str, topics: Sequence[str] | str = (), poke_interval: timedelta | float = 5, **arguments: Any
    ) -> None:
        super().__init__(poke_interval=poke_interval, **arguments)
        self.link = link
        self.topics = topics

    def pre_execute(self, context: Any) -> None:
        """Prepare the logs of the task."""
        quiet()

    def execute(self, context: "Context") -> dict[str, Any]:
        from strait.errors import ClusterUnavailable, StateError
        from strait.text import printable
        from strait_airflow.errors import airflow_errors, described

        self.log.info("on the page: %s", page_address(self.link))
        with airflow_errors(self.link), closing(condition_of(self._condition())) as waiting:
            try:
                left = waiting.look()
                if not left:
                    return waiting.result()
            except (ClusterUnavailable, StateError) as error:
                left = described(error, self.link)
            data = waiting.data()
        self.log.info("link %s: %s", self.link, printable(left))
        trigger = ConditionTrigger(condition=data, every_seconds=self.poke_interval)
        self.defer(trigger=trigger, method_name="resumed", timeout=timedelta(seconds=self.timeout))
        raise AssertionError("deferring ends the task's process")

    def resumed(self, context: "Context", event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of the trigger."""
        from strait_airflow.errors import raise_for

        if FAILED in event:
            raise_for(event[FAILED], retriable=False)
        return dict(event[REACHED])

    def _condition(self) -> dict[str, Any]:
        return {"link": self.link, "topics": texts("topics", self.topics)}


class StraitCaughtUpSensor(_LinkSensor):
    """Waits until a link has replicated topics up to a moment on the source. Returns its offsets on both clusters.

    Args:
        link: name of the link.
        topics: source topics; none: all that it replicates.
        to: `now`: everything that the source has when the task starts. A time, such as `{{ data_interval_end }}`: every
            record with an earlier timestamp. Or source offsets: topic -> partition -> offset.
        lateness: for a time: how much later than its timestamp a record may arrive at the source.
    """

    template_fields: Sequence[str] = ("link", "topics", "to")

    def __init__(
        self,
        *,
        to: str | datetime | Mapping[str, Mapping[int, int]] = "now",
        lateness: timedelta | float = 0,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.to = to
        self.lateness = lateness

    def _condition(self) -> dict[str, Any]:
        from strait.planning.status.up_to import UpTo

        late = self.lateness.total_seconds() if isinstance(self.lateness, timedelta) else float(self.lateness)
        to = UpTo.parse(self.to).as_text()
        return {**super()._condition(), "kind": "caught_up", "to": to, "lateness_seconds": late}


class StraitHealthSensor(_LinkSensor):
    """Waits until a link needs no operator, each of its slots reports, and every partition is replicated or paused.

    Args:
        link: name of the link.
        topics: only partitions of these source topics; none: the whole link.
    """

    def _condition(self) -> dict[str, Any]:
        return {**super()._condition(), "kind": "healthy"}
