"""The task of the quarantine DAG: replay or discard quarantined records on behalf of the user that triggered it."""

import logging
from collections.abc import Mapping
from typing import Any

from strait.text import plural

log = logging.getLogger(__name__)

_LINES_MOST = 50


def settle(asked: Mapping[str, Any], by: str) -> str:
    """Replay or discard records, or only log those that would be affected. Return a one-line summary.

    Args:
        asked: the DAG's Params.
        by: user that triggered the DAG.
    """
    from strait.control.quarantine import Quarantine
    from strait.state.quarantine_log import Chosen
    from strait_airflow.errors import airflow_errors
    from strait_airflow.settings import link_of

    link, action = asked["link"], asked["action"]
    chosen = Chosen(asked["topic"] or None, asked["partition"], asked["reason"] or None)
    with airflow_errors():
        quarantine = Quarantine(link_of(link))
        if asked["dry_run"]:
            found = quarantine.unsettled(chosen)
            into = quarantine.targets(found, asked["to"] or None) if action == "replay" else {}
            for entry in found[:_LINES_MOST]:
                log.info("%s%s: %s: %s", entry, _into(into, entry.topic), entry.reason, entry.detail)
            return f"link {link}: {action} would settle {plural(len(found), 'record')}"
        with quarantine.settling() as settling:
            found = quarantine.unsettled(chosen)
            if action == "replay":
                done = settling.replay(found, quarantine.targets(found, asked["to"] or None))
            else:
                done = settling.drop(found)
    return f"link {link}: {action} by {by}: settled {plural(done, 'record')}"


def _into(places: Mapping[str, str], topic: str) -> str:
    return f" into {places[topic]}" if topic in places else ""
