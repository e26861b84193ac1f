"""A standby's slot: it follows the state and copies nothing while another application reports for it.

There is no election and no fencing. If both copy for a moment, since a report came late or the first one is back, the
destination's log resolves it as between any two instances of a link (ADR 2), and ADR 12 covers old records.
"""

from collections.abc import Callable

from strait.config.app_spec import AppSpec
from strait.engine.evaluation import Evaluators
from strait.state.presence import Presence
from strait.state.reader import StateReader
from strait.state.schema import Plan

_LISTEN_SECONDS = 0.1


def is_for(plan: Plan, spec: AppSpec, evaluators: Evaluators | None = None) -> bool:
    """Return whether a slot that was started with this spec and these evaluators may copy under this plan."""
    served = evaluators is None or evaluators.serves(plan.transforms)
    return served and not plan.stopped and plan.slots == spec.slots


def plan_to_take_over(
    other: Presence,
    state: StateReader,
    spec: AppSpec,
    should_stop: Callable[[], bool],
    evaluators: Evaluators | None = None,
) -> Plan | None:
    """Wait until the other application has stopped reporting. Returns the plan that is current then, or as soon as it
    is not for this slot any more; None if the slot stops before."""
    while not should_stop():
        other.listen(_LISTEN_SECONDS)
        state.poll()
        plan = state.plans[spec.group]
        if not is_for(plan, spec, evaluators) or other.is_gone():
            return plan
    return None


def until_it_is_back(should_stop: Callable[[], bool], other: Presence) -> Callable[[], bool]:
    """Return a function that reports whether to stop copying after a takeover: the other application is back, or
    ``should_stop`` returns True."""

    def ends() -> bool:
        other.listen()
        return should_stop() or other.is_back()

    return ends
