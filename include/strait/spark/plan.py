"""What the driver needs to know of the plan: whether to run, and with how many slots. The slots follow it
themselves."""

from strait.config.app_spec import AppSpec
from strait.errors import StateError, StraitError
from strait.state.reader import StateReader
from strait.state.schema import Plan

_TIMEOUT_SECONDS = 5.0


def plan_in_force(spec: AppSpec) -> Plan | None:
    """The plan of the application's task group; None where there is none yet, or the destination does not answer now.

    Raises:
        StraitError: the plan cannot be read, and trying again cannot help.
    """
    try:
        with StateReader(spec.destination, spec.destination_name, spec.link, follow=("plan",)) as state:
            try:
                state.catch_up(_TIMEOUT_SECONDS)
            except StateError:
                if spec.group not in state.plans:
                    raise  # else the last good plan stays in force
            return state.plans.get(spec.group)
    except StraitError as error:
        if error.retriable:
            return None
        raise
