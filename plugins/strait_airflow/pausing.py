"""What the pause DAG does: pause or resume a link, a topic or a partition on behalf of whoever triggered it."""

import logging

from strait_airflow.page_address import page_address

log = logging.getLogger(__name__)


def change(link: str, action: str, what: str, reason: str, by: str) -> str:
    """Pause or resume. Returns a line that says what was done."""
    from strait.control import pausing
    from strait.planning.plan.pauses import Scope, described
    from strait_airflow.errors import airflow_errors
    from strait_airflow.settings import clusters_of

    log.info("on the page: %s", page_address(link))
    with airflow_errors():
        scope, file = Scope.parse(what), clusters_of(link)
        if action == "pause":
            done = pausing.pause(file, link, scope, by=by, reason=reason)
        else:
            done = pausing.resume(file, link, scope)
    for item in done.pauses:
        log.info("paused: %s", described(item))
    plans = ", ".join(f"plan {plan.version} of group {plan.group}" for plan in done.published)
    return f"link {link}: {action} {done.scope} by {by}: " + (
        f"published {plans}" if plans else "no partition is concerned"
    )
