"""A standby's slot: it follows the state and copies nothing, as long as another application reports for it.

Nobody elects and nobody fences. Where both copy for a moment, since a report came late or the first one is back, the
destination's log settles it as between any two copies of a link (ADR 2), and for old records ADR 12.
"""

from collections.abc import Callable

from strait.config.app_spec import AppSpec
from strait.state.presence import Presence
from strait.state.reader import StateReader
from strait.state.schema import Plan

_LISTEN_SECONDS = 0.1


def is_for(plan: Plan, spec: AppSpec) -> bool:
    """Whether a slot that was started with this spec may copy by this plan."""
    return not plan.stopped and plan.slots == spec.slots


def plan_to_take_over(
    other: Presence, state: StateReader, spec: AppSpec, should_stop: Callable[[], bool]
) -> Plan | None:
    """Wait until the other application is gone. Returns the plan in force then, or as soon as it is not for this slot
    any more; None where the slot ends before."""
    while not should_stop():
        other.listen(_LISTEN_SECONDS)
        state.poll()
        plan = state.plans[spec.group]
        if not is_for(plan, spec) or other.is_gone():
            return plan
    return None


def until_it_is_back(should_stop: Callable[[], bool], other: Presence) -> Callable[[], bool]:
    """Whether to copy no longer after a takeover: the other application has come back, or what else there is."""

    def ends() -> bool:
        other.listen()
        return should_stop() or other.is_back()

    return ends
