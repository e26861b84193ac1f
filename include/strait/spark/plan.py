"""Read from the plan whether the driver must run, and with how many slots. The slots follow the plan themselves."""

from typing import NamedTuple

from strait.config.app_spec import AppSpec, Spec
from strait.errors import StateError, StraitError
from strait.state.reader import StateReader
from strait.state.schema import Plan

_TIMEOUT_SECONDS = 5.0


class Wanted(NamedTuple):
    """How many Spark tasks the application must run, and whether it must end. ``plan``: None for a pool."""

    slots: int
    stopped: bool
    plan: Plan | None = None

    @property
    def transforms(self) -> frozenset[int]:
        """The numbers of the transformations."""
        return frozenset() if self.plan is None else self.plan.transforms


def wanted(spec: Spec) -> Wanted | None:
    """Return the number of tasks by the application's plan; None if the plan is unknown now. A pool has the number of
    tasks in its spec.

    Raises:
        StraitError: the plan cannot be read, and a retry cannot help.
    """
    if not isinstance(spec, AppSpec):
        return Wanted(spec.slots, stopped=False)
    plan = plan_in_force(spec)
    return None if plan is None else Wanted(plan.slots, plan.stopped, plan)


def plan_in_force(spec: AppSpec) -> Plan | None:
    """Return the plan of the application's task group; None if there is none yet, or the destination does not respond
    now.

    Raises:
        StraitError: the plan cannot be read, and a retry cannot help.
    """
    try:
        with StateReader(spec.destination, spec.destination_name, spec.link, follow=("plan",)) as state:
            try:
                state.catch_up(_TIMEOUT_SECONDS)
            except StateError:
                if spec.group not in state.plans:
                    raise  # else the last valid plan stays current
            return state.plans.get(spec.group)
    except StraitError as error:
        if error.retriable:
            return None
        raise
