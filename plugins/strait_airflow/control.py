"""The work of the tasks of a link's DAG, without Airflow's context, which `graph` adds. Each reads the link's state itself:
only small values are passed from task to task.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from strait.text import plural
from strait.waiting import unix_ms
from strait_airflow.noticing import ACTED, WORK, Acted, reasons_of
from strait_airflow.steps import ASK, Run, Steps, begin, last
from strait_airflow.stored import texts_of
from strait_airflow.submitting import due_applications
from strait_airflow.verdict import Failure
from strait_airflow.watching import look_at

if TYPE_CHECKING:
    from strait.control.plane import Control
    from strait.planning.status.needs import Need

log = logging.getLogger(__name__)

CLUSTERS = "clusters"
"""Key of the store: cluster -> its Kafka cluster ID."""

METRICS_SECONDS = 3.0
"""Time between the two readings from which rates are computed. Slots report once per second."""


class Store(Protocol):
    """The state of the link's asset, which the watch also reads."""

    def get(self, key: str, default: Any = None) -> Any: ...

    def set(self, key: str, value: Any) -> None: ...


class Monitored(NamedTuple):
    """The result of `monitor`.

    Attributes:
        due: the applications that need an action, one for each instance of `submit`; see `submit`.
        failures: failed steps; the steps that do not depend on them were done.
        reasons: why the run was started.
        done: the result, in one line.
        measure: whether metrics can be read, and have not just been.
        planned: whether it planned, or tried to.
        planning: those of the failures that are of planning.
    """

    due: list[dict[str, Any]]
    failures: list[Failure]
    reasons: list[str]
    done: str
    measure: bool = True
    planned: bool = True
    planning: list[Failure] = []  # noqa: RUF012  never changed


def monitor(link: str, notices: Sequence[Mapping[str, Any]], store: Store, run: Run, *, restart: str = "") -> Monitored:
    """Plan and publish, and determine which applications need an action. Do only the work that the watch started the run
    for; without notices, all pending work.

    Args:
        notices: the payloads that `LinkTrigger` fired, oldest first. Empty in an hourly run and one triggered manually.
        store: records the facts that were acted upon.
        restart: a task group whose application the user wants to restart; "": none.
    """
    begin(link)
    acted, began_ms = Acted.of(store.get(ACTED)), unix_ms()
    notices = () if run.cleared else notices  # their findings are old
    reasons = reasons_of(notices)
    for reason in reasons:
        log.info("because: %s", reason)
    if not notices and not restart and not run.cleared and not acted.failed and acted.planned_at_ms >= run.after_ms:
        done = "nothing new: a run has planned after this one was requested"
        return Monitored([], [], reasons, last(done), measure=False, planned=False)
    facts = [notice["seen"] for notice in notices]
    at_ms = run.after_ms if facts else max(run.after_ms, acted.seen_at_ms)
    latest = acted.with_facts(at_ms, facts or [look_at(link)])
    seen = dict(latest.seen)
    store.set(ACTED, acted.beginning(run.id, seen, began_ms).data())
    steps = Steps(link)
    planned = not notices or any(notice["plan"] for notice in notices)
    may_ask = (
        not run.manual and acted.failed in ("", ASK) and acted.seen.get("settings") in (None, seen.get("settings"))
    )
    line, everything = (
        (steps.run(lambda: apply(link, store, may_ask=may_ask), plans=True) or ("", False)) if planned else ("", False)
    )
    if everything:
        seen.pop(WORK, None)  # the same work is new if it appears again
    # If planning fails, the applications are still made to match the last plan.
    silent = dict.fromkeys(notices[-1]["silent"], int(notices[-1]["at_ms"])) if notices else {}
    found, held = steps.run(lambda: due_applications(link, steps, silent, restart, run)) or ([], acted.held)
    failed = steps.kind if planned or steps.failures else acted.failed
    planned_at = began_ms if planned and not steps.failures else acted.planned_at_ms
    latest = latest._replace(seen=seen, failed=failed, held=held, planned_at_ms=planned_at)
    store.set(ACTED, latest._replace(acting=Acted.of(store.get(ACTED)).acting).data())
    parts = [line, *(f"{one['name']}: {one['because']}" for one in found), *(["failed"] if steps.failures else [])]
    done = last("; ".join(part for part in parts if part) or "no application needs an action")
    return Monitored(
        found, steps.failures, reasons, done, not steps.destination_is_away, planned, planning=steps.planning
    )


def apply(link: str, store: Store | None = None, *, may_ask: bool = False) -> tuple[str, bool]:
    """Plan, create missing topics, publish the plan. Changes that need approval are left to the approval DAG.

    Args:
        store: keeps the IDs of the link's clusters, so that another cluster at the same address is not taken for it.
        may_ask: no edit explains a change of the topics, so their settings may come from an older database.

    Returns: a summary line, and whether everything was done.

    Raises:
        OutdatedSettings: an operator must confirm the settings.
    """
    from strait.errors import ApprovalMissing
    from strait.planning.review.text import proposal_text, shortened

    known = {} if store is None else texts_of(store.get(CLUSTERS))
    with live_control(link, known) as control:
        proposal = control.propose()
        shown = proposal_text(proposal)
        logged(shortened(shown))
        if may_ask and proposal.drafts:
            _check_settings(control)
        try:
            outcome = control.apply(proposal)
        except ApprovalMissing as waits:
            return logged(str(waits).splitlines()), False
        if store is not None:
            store.set(CLUSTERS, control.known_clusters)
        text, before = outcome.as_text(), set(shown.splitlines())
        logged(shortened("\n".join(line for line in text.splitlines() if line not in before)))
        line = _summary(text.splitlines())
        if outcome.pending:
            line += f"; {plural(len(outcome.pending), 'change waits', 'changes wait')} for approval"
        return line, not (outcome.refused or outcome.pending)


def _check_settings(control: "Control") -> None:
    from strait.config.links import TOPICS
    from strait.errors import OutdatedSettings
    from strait.text import utc

    found = control.settings_in_force()
    if found.same_topics or not found.elsewhere.startswith("Airflow ") or control.link.approval == "required":
        return
    here = control.link.origins.get(TOPICS, "the links file")
    raise OutdatedSettings(
        f"link {control.name}: plan {found.version} of {utc(found.published_at_ms)} UTC has topics of {found.elsewhere} that this "
        f"Airflow does not know, and no edit explains the difference from those of {here}; its database may be restored from "
        "an older copy",
        hint="trigger this DAG to use the present settings, or correct the Variable",
    )


def metrics(link: str) -> tuple[str, "tuple[Need, ...]", bool]:
    """Log a line of metrics for each topic, and send them as gauges. Return the first line, the actions of an operator that
    the link needs, and whether there may be more; see `gauges.Measured.partial`.

    Raises:
        StraitError
    """
    from strait.control.needs import Needs
    from strait.state.link_handle import ConfiguredLink
    from strait_airflow import gauges
    from strait_airflow.applications import supervisor
    from strait_airflow.settings import clusters_of

    file = clusters_of(link)
    of = ConfiguredLink.of(file, link)
    with of.state("plan", "map", "reports") as state:
        state.catch_up()
        if not state.plans:
            return logged(["no plan was ever published: there is nothing to measure"]), (), False
        earlier, until = dict(state.reports), time.monotonic() + METRICS_SECONDS
        while time.monotonic() < until:
            state.poll(0.5)
        measured = gauges.measure(file, link, state, earlier)
        dying = supervisor(file, link).dying(state.plans.values())
        needs = Needs(of).of(state, measured.statuses, dying)
    return logged(measured.lines or ["no topic is replicated"]), needs, measured.partial


def live_control(link: str, known: Mapping[str, str] = MappingProxyType({})) -> "Control":
    """Return the control plane of the link as configured by the links file, the Connections and its Variable.

    Args:
        known: cluster -> its Kafka cluster ID.
    """
    from strait.config.links import with_known
    from strait.control.plane import Control
    from strait_airflow.settings import clusters_of, with_live_topics

    file = with_known(with_live_topics(clusters_of(link), link), known)
    return Control(file, link, lambda text: log.info("%s", text))


def logged(lines: Iterable[str]) -> str:
    """Log each line; return the one that summarizes the plan, else the first one."""
    lines = list(lines)
    for line in lines:
        log.info("%s", line)
    return _summary(lines)


def _summary(lines: Sequence[str]) -> str:
    return next((line for line in lines if line.startswith("plan ")), lines[0] if lines else "")
