"""Finds the copies that another tool made in a link's source: they are not replicated back to the cluster that they came
from."""

from strait.config.links import Link
from strait.control.registration import moved_in
from strait.errors import NotAuthorized, StateError
from strait.kafka.admin import Admin
from strait.model import ClusterFacts
from strait.planning.plan.moved_copies import after_moved_in, leaves_copies_out, withheld
from strait.planning.plan.planner import Survey
from strait.reasons import Reason


def without_moved_copies(name: str, link: Link, found: Survey, source: ClusterFacts, admin: Admin) -> Survey:
    """Return the survey with starts after such copies. Queries the source only if topics start; without an answer these
    wait.

    Args:
        admin: the source's.

    Raises:
        ClusterUnavailable
    """
    if not leaves_copies_out(link, found):
        return found
    try:
        known = moved_in(*admin.at, name)
    except NotAuthorized as error:
        return withheld(link, found, Reason.SOURCE_DENIED, error.message)
    except StateError as error:
        return withheld(link, found, Reason.PRODUCERS_UNREADABLE, error.message)
    return after_moved_in(link, found, source, known)
