"""Tasks that Airflow's triggerer runs, without a worker: the scheduler starts their trigger, and the trigger ends them."""

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, StartTriggerArgs

from strait_airflow.graph import decoded

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

T = TypeVar("T")

_THREADS = 4

_workers = ThreadPoolExecutor(_THREADS, thread_name_prefix="strait-task")


class TriggererTask(BaseOperator):
    """A task of a link's DAG. It fails, in a worker, if its trigger has not ended it in time, as when no triggerer runs.

    Args:
        within: the time that it may take, with the wait for a triggerer.
    """

    start_from_trigger = True
    trigger: ClassVar[type["LinkTaskTrigger"]]

    def __init__(self, *, link: str, within: timedelta, **arguments: Any) -> None:
        super().__init__(retries=0, execution_timeout=within, **arguments)
        self.link = link
        self.within = within
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=f"{self.trigger.__module__}.{self.trigger.__qualname__}",
            trigger_kwargs={"link": link},
            next_method="never_resumed",
            timeout=within,
        )

    def execute(self, context: "Context") -> None:
        """Start the trigger from a worker: an Airflow that does not start it from its scheduler calls this."""
        self.defer(trigger=self.trigger(link=self.link), method_name="never_resumed", timeout=self.within)

    def never_resumed(self, context: "Context", event: Any) -> None:
        """Airflow requires a method to resume with; the trigger ends the task instead."""
        raise AssertionError(event)


class LinkTaskTrigger(BaseTrigger):
    """A trigger that does the work of a `TriggererTask`."""

    def __init__(self, *, link: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.link = link

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{type(self).__module__}.{type(self).__qualname__}", {"link": self.link}

    async def of_task(self, task: str, key: str, *, same_index: bool = False) -> Any:
        """Return an XCom of another task of the run; None if there is none.

        Args:
            same_index: the task is mapped as this one is: return that of the instance with the same index.
        """
        from airflow.sdk.execution_time.xcom import XCom

        ti = self.task_instance
        assert ti is not None
        where = {"dag_id": ti.dag_id, "run_id": ti.run_id, "task_id": task, "key": key}
        return decoded(await in_thread(XCom.get_one, **where, map_index=ti.map_index if same_index else None))


async def in_thread(call: Callable[..., T], *arguments: Any, **named: Any) -> T:
    """Call a function that blocks. Its log lines are the trigger's."""
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_workers, lambda: context.run(call, *arguments, **named))


def in_background(call: Callable[[], Any]) -> None:
    """Call a function that blocks, without waiting for it."""
    _workers.submit(call)
