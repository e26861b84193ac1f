"""The links of a pool as their own state topics show them: which slots they have, and how much each copies."""

from collections.abc import Mapping
from typing import NamedTuple

from strait.config.app_spec import Seat
from strait.errors import StraitError
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import Plan

_TIMEOUT_SECONDS = 5.0


class Observed(NamedTuple):
    """The slots of one link that run or should.

    Attributes:
        seats: its slots by its current plans; none if it is stopped.
        loads: bytes per second of the slots that have reported lately.
        error: the reason why its state could not be read; "" if it was.
    """

    link: str
    seats: tuple[Seat, ...] = ()
    loads: Mapping[Seat, float] = {}
    error: str = ""


def plans_in_force(link: ConfiguredLink) -> Mapping[str, Plan]:
    """Return task group -> its current plan; none if they cannot be read now."""
    try:
        with link.state("plan") as state:
            state.catch_up(_TIMEOUT_SECONDS)
            return dict(state.plans)
    except StraitError:
        return {}


def observe(link: ConfiguredLink) -> Observed:
    """Read the plans and the reports of a link. Never raises: an unavailable link hides no other."""
    try:
        with link.state("plan", "reports") as state:
            state.catch_up(_TIMEOUT_SECONDS)
            groups = link.settings.groups
            seats = [
                Seat(link.name, group, slot)
                for group, plan in sorted(state.plans.items())
                if not plan.stopped
                for slot in range(max(plan.slots, groups[group].most_slots if group in groups else 1))
            ]
            newest = {
                Seat(link.name, *place): max(reports, key=lambda report: report.at_ms)
                for place, reports in state.reports.items()
                if reports
            }
    except StraitError as error:
        return Observed(link.name, error=str(error))
    loads = {seat: report.bytes_per_second for seat, report in newest.items() if seat in seats}
    return Observed(link.name, tuple(seats), loads)
