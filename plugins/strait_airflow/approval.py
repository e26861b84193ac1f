"""Tasks of the approval DAG: determine the changes that need approval, and act on the response.

The shown plan is passed from task to task: the response applies to it, and no other change is made.
"""

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from strait.text import plural
from strait_airflow.noticing import Judged
from strait_airflow.page_address import page_address
from strait_airflow.verdict import Incident, note_lines, verdict_of

if TYPE_CHECKING:
    from strait.planning.review.approval import ShownPlan
    from strait_airflow.control import Store

log = logging.getLogger(__name__)


class XComs(Protocol):
    """The task instance, as far as it is used."""

    run_id: str

    def xcom_push(self, key: str, value: Any) -> None: ...


APPROVE, REJECT = "Approve", "Reject"
UNANSWERED = "unanswered"
"""Key of the asset's state under which an unanswered request is stored: fingerprint, and since when."""

_BODY_LINES_MOST = 200  # Airflow stores it in its database, and no operator reads more


def look(link: str) -> dict[str, Any]:
    """Return the changes to approve: `shown`, a `ShownPlan`, and `body` for the page.

    Skips the task if no change needs approval, or if the same changes were rejected before.
    """
    from airflow.sdk.exceptions import AirflowSkipException

    from strait_airflow.control import live_control
    from strait_airflow.errors import airflow_errors
    from strait_airflow.settings import rejected_name

    log.info("on the page: %s", page_address(link))
    with airflow_errors(), live_control(link) as control:
        shown = control.show(control.propose())
    if not shown.effects:
        raise AirflowSkipException(f"link {link}: no change needs approval")
    before = _rejected(link)
    if before.get("fingerprint") == shown.fingerprint:
        raise AirflowSkipException(
            f"link {link}: {before.get('by')} rejected these changes at {before.get('at')}; "
            f"delete the Variable {rejected_name(link)} to be asked again"
        )
    return {"shown": shown.as_data(), "body": _body(shown)}


def act(link: str, found: Mapping[str, Any], answer: Mapping[str, Any], store: "Store", ti: "XComs") -> str:
    """Apply the shown plan if it was approved. Store a user's rejection, so that these changes are not proposed again.

    Args:
        store: the state of the link's asset.
        ti: takes the note of the run.

    Raises:
        AirflowFailException: the request was not answered, for the first time within a day, or the changes would now differ
            from the shown ones; the next run asks again.
    """
    from strait.planning.review.approval import ShownPlan
    from strait_airflow.control import live_control, logged
    from strait_airflow.errors import airflow_errors
    from strait_airflow.steps import NOTE

    with airflow_errors():
        shown = ShownPlan.parse(json.dumps(found["shown"]), where=f"what link {link} was asked about")
    who = (answer.get("responded_by_user") or {}).get("name")
    if answer["chosen_options"] != [APPROVE]:
        if who is None:
            return _unanswered(link, shown, store, ti)
        store.set(UNANSWERED, {})
        _remember(link, shown, who)
        ti.xcom_push(NOTE, rejected := logged([f"link {link}: rejected by {who}; nothing is done"]))
        return rejected
    store.set(UNANSWERED, {})
    log.info("link %s: approved by %s", link, who)
    with airflow_errors(), live_control(link) as control:
        done = logged(control.apply(shown=shown).as_text().splitlines())
    ti.xcom_push(NOTE, f"approved by {who}\ndone: {done}")
    return done


def _unanswered(link: str, shown: "ShownPlan", store: "Store", ti: "XComs") -> str:
    """Fail for an unanswered request; return a line if a run has failed for it within a day."""
    from strait.waiting import unix_ms
    from strait_airflow.control import logged
    from strait_airflow.errors import raise_for
    from strait_airflow.steps import NOTE

    incident = Incident(f"unanswered {shown.fingerprint}", f"link {link}: nobody has answered: {_waiting(shown)}")
    result = verdict_of((), (), [incident], Judged.of(store.get(UNANSWERED)), ti.run_id, unix_ms())
    store.set(UNANSWERED, result.judged.data())
    ti.xcom_push(NOTE, "\n".join(note_lines(result, (), "")))
    if result.is_red:
        raise_for(incident.line, retriable=False)
    return logged([result.headline])


def _waiting(shown: "ShownPlan") -> str:
    return f"{plural(len(shown.effects), 'change waits', 'changes wait')} for approval, and the next run asks again"


def _rejected(link: str) -> dict[str, Any]:
    from airflow.sdk import Variable

    from strait.json_text import value_of
    from strait_airflow.settings import rejected_name

    try:
        found = value_of(Variable.get(rejected_name(link), default="{}"))
    except ValueError:
        return {}  # not written by Strait; one more request does no harm
    return found if isinstance(found, dict) else {}


def _remember(link: str, shown: "ShownPlan", who: str) -> None:
    from airflow.sdk import Variable

    from strait_airflow.settings import rejected_name

    at = datetime.now(UTC).isoformat(timespec="seconds")
    value = json.dumps({"fingerprint": shown.fingerprint, "by": who, "at": at})
    Variable.set(rejected_name(link), value, description="Changes that were rejected; delete it to be asked again.")


def _body(shown: "ShownPlan") -> str:
    """Return the text as a block of Markdown, which no line of it can end."""
    from strait.text import printable

    lines = [printable(line) for line in shown.text.splitlines()]
    more = len(lines) - _BODY_LINES_MOST
    cut = (
        [*lines[:_BODY_LINES_MOST], f"... and {plural(more, 'more line')}, which `strait plan` shows"]
        if more > 0
        else lines
    )
    fence = "`" * max(2, *(len(run) for line in cut for run in re.findall("`+", line)), 0) + "`"
    return "\n".join([fence, *cut, fence])
