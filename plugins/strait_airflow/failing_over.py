"""Tasks of the failover and rehearsal DAGs: fail over a link, preview or rehearse that, for the triggering user."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from strait.text import plural
from strait_airflow.page_address import page_address

if TYPE_CHECKING:
    from strait.planning.waves import Wave
    from strait.state.failover_records import Failover, FailoverStep

log = logging.getLogger(__name__)


def fail_over(asked: Mapping[str, Any], by: str) -> str:
    """Run the steps of a failover, and log each as one line. Return a line with the result.

    Args:
        asked: the DAG's Params.
        by: user that triggered the DAG.
    """
    from strait.control.failover import failover
    from strait.control.failover.turn import Settings
    from strait.planning.failover import summary
    from strait.planning.failover_report import screen
    from strait.planning.waves import Wave
    from strait_airflow.errors import airflow_errors
    from strait_airflow.hook_dags import run_dag
    from strait_airflow.settings import link_of

    link = asked["link"]
    with airflow_errors():
        wave = Wave.of(asked["topics"] or (), asked["groups"] or ())
    if asked["unfence"]:
        return unfence(link, wave)
    if asked["kind"] == "rehearsal":
        return rehearse(link, by, asked["reason"], wave)
    settings = Settings(
        by=by,
        reason=asked["reason"],
        fence=tuple(asked["fence"] or ()),
        quiet_seconds=asked["quiet_seconds"],
        timeout_seconds=60.0 * asked["timeout_minutes"],
        accept_inexact=("*",) if asked["accept_inexact"] else (),
        accept_tail=asked["accept_tail"],
        accept_transformed=asked["accept_transformed"],
        include_moved=asked["include_moved"],
        even_if_source_answers=asked["even_if_source_answers"],
        wave=wave,
    )
    log.info("on the page: %s", page_address(link))
    with airflow_errors():
        of = link_of(link, live=True, reverse=True, beside=True)
        act = failover.dry_run if asked["dry_run"] else failover.run
        record = act(of, asked["kind"], settings, _tell, run_dag)
    if asked["dry_run"]:
        held = [step.name for step in record.steps if step.verdict in ("waiting", "failed")]
        return f"link {link}: dry run: " + (f"would wait for, or fail at: {', '.join(held)}" if held else "all holds")
    servers = of.destination.properties.get("bootstrap.servers", "")
    for line in screen(record, servers):
        log.info("%s", line)
    return summary(record)


def unfence(link: str, wave: "Wave") -> str:
    """Remove the last failover's ACLs; abort it if it runs and has not stopped the link. Return a result line."""
    from strait.control.failover import failover
    from strait_airflow.errors import airflow_errors
    from strait_airflow.hook_dags import run_dag
    from strait_airflow.settings import link_of

    with airflow_errors():
        record, lifted = failover.unfence(link_of(link), _tell, run_dag, wave)
    return f"link {link}: failover {record.id}, {record.outcome}: {plural(lifted, 'ACL')} removed"


def rehearse(link: str, by: str, reason: str = "", wave: "Wave | None" = None) -> str:
    """Rehearse a failover of a link with consumer groups of other names. Return a line with the result."""
    from strait.planning.failover import summary

    return summary(rehearsed(link, by, reason, wave))


def rehearsed(link: str, by: str, reason: str = "", wave: "Wave | None" = None) -> "Failover":
    """Do the same. Return its record."""
    from strait.control.failover import failover
    from strait.control.failover.turn import Settings
    from strait.planning.waves import WHOLE_LINK
    from strait_airflow.errors import airflow_errors
    from strait_airflow.hook_dags import run_dag
    from strait_airflow.settings import link_of

    log.info("on the page: %s", page_address(link))
    with airflow_errors():
        of = link_of(link, live=True, reverse=True)
        settings = Settings(by=by, reason=reason, wave=wave or WHOLE_LINK)
        return failover.rehearse(of, settings, _tell, run_dag)


def _tell(step: "FailoverStep") -> None:
    level = logging.WARNING if step.verdict in ("warning", "failed") else logging.INFO
    log.log(level, "%s %s, %.1f s: %s", step.verdict, step.name, step.seconds, step.detail)
