"""Read from the plan whether the driver must run, and with how many slots. The slots follow the plan themselves."""

from strait.config.app_spec import AppSpec
from strait.errors import StateError, StraitError
from strait.state.reader import StateReader
from strait.state.schema import Plan

_TIMEOUT_SECONDS = 5.0


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
