"""The task of the pause DAG: pause or resume a link, a topic or a partition, resolve a deleted topic, or acknowledge
losses."""

import logging
from typing import Literal

from strait.text import plural
from strait_airflow.page_address import page_address

log = logging.getLogger(__name__)

Action = Literal["pause", "resume", "continue", "restart", "acknowledge"]


def change(link: str, action: Action, what: str, reason: str, by: str, count: int | None = None) -> str:
    """Pause, resume, resolve or acknowledge. Return a one-line summary.

    Args:
        action: `continue` and `restart` are the decisions of `strait resolve`.
        `what`: TOPIC or TOPIC:PARTITION; empty: the whole link. A decision needs a TOPIC.
        by: user that triggered the DAG.
        count: number of losses that the user has seen; None: all of now.
    """
    from strait.control import acknowledging, pausing, resolving
    from strait.planning.plan.pauses import Scope, described
    from strait_airflow.errors import airflow_errors
    from strait_airflow.settings import link_of

    log.info("on the page: %s", page_address(link))
    with airflow_errors():
        scope, of = Scope.parse(what), link_of(link)
        if action == "acknowledge":
            said = acknowledging.acknowledge(of, scope.topic, by=by, reason=reason, count=count)
            return f"link {link}: {plural(said.count, 'loss is', 'losses are')} acknowledged by {by}"
        if action == "pause":
            done = pausing.pause(of, scope, by=by, reason=reason)
        elif action == "resume":
            done = pausing.resume(of, scope)
        else:
            done = resolving.resolve(of, what, action, by=by, reason=reason)
    for item in done.pauses:
        log.info("paused: %s", described(item))
    plans = ", ".join(f"plan {plan.version} of group {plan.group}" for plan in done.published)
    return f"link {link}: {action} {done.scope} by {by}: " + (
        f"published {plans}" if plans else "no partition is concerned"
    )
