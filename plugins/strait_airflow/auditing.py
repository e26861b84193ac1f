"""The task of the audit DAG: compare a link's topics, all of them or a sample, and fail if something differs or nothing
could be compared."""

import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from strait.text import plural, without_numbers
from strait_airflow.page_address import page_address

if TYPE_CHECKING:
    from strait.audit.progress import AuditProgress
    from strait.config.audit import AuditRequest
    from strait.control.audit import Ended

log = logging.getLogger(__name__)

_LINES_MOST = 50
_ID_CHARACTERS = 100


def audit(link: str, asked: Mapping[str, Any], ti: Any, seed: str) -> str:
    """Audit a link. Return a one-line summary; fail the task if something differs without an explanation on
    record, or nothing could be compared.

    Args:
        asked: the DAG's Params.
        ti: the task instance; see `audit_id`.
        seed: of the sample, if the Params have none.
    """
    from strait.config.audit import AuditRequest
    from strait.errors import ConfigError
    from strait.text import bytes_per_second
    from strait_airflow.errors import airflow_errors

    id_ = audit_id(link, ti)
    with airflow_errors():
        try:
            budget = bytes_per_second(asked["budget"])
        except ValueError as error:
            raise ConfigError("budget", [str(error)]) from None
        request = AuditRequest(
            relation="ledger" if asked["ledger"] else "map",
            topics=tuple(asked["topics"] or ()),
            sample=float(asked["sample"]),
            seed=asked["seed"] or seed,
            strong=bool(asked["strong"]),
            replicas=bool(asked["replicas"]),
            bytes_per_second=budget,
        )
        ended = run_audit(link, request, id_, int(asked["slots"]))
    assert ended is not None, "nothing ends it"
    return result_of(link, ended)


def result_of(link: str, ended: "Ended") -> str:
    """Log the differences, and the parts that are not covered. Return a one-line summary, or fail the task, as `audit`."""
    from strait_airflow.errors import raise_for

    counted = ""
    if ended.certificate is not None:
        body = ended.certificate["body"]
        for one in body["differences"][:_LINES_MOST]:
            log.warning("%s", one)
        for left in body["not_covered"][:_LINES_MOST] if ended.verdict == "incomplete" else ():
            log.warning("not covered: %s", left)
        counted = f"{plural(sum(body['unexplained'].values()), 'difference')}, "
    text = (
        f"link {link}: verdict {ended.verdict or 'unknown'}, {plural(ended.records, 'record')} compared, {counted}"
        f"certificate {ended.directory}/certificate.json"
    )
    if not ended.holds and (ended.verdict != "incomplete" or not ended.records):
        raise_for(text, retriable=False)
    return text


def run_audit(
    link: str, request: "AuditRequest", id_: str, slots: int, is_over: "Callable[[], bool]" = lambda: False
) -> "Ended | None":
    """Run an audit of a link in a Spark application, or continue the one with this ID; log its progress. Return None if
    ``is_over`` ended it. Raises StraitError."""
    from strait.config.audit import AuditJob
    from strait.config.home import home
    from strait.control.audit import AuditRun, clusters_of, directory_of, ledger_of
    from strait_airflow import settings

    log.info("on the page: %s", page_address(link))
    file = settings.clusters_of(link)
    spark = file.links[link].spark
    job = AuditJob(id=id_, directory=directory_of(spark, home()), ledger=ledger_of(spark, home()), request=request)
    return AuditRun(file, clusters_of(file, link), spark, job, home(), slots=slots, show=_shown()).run(is_over)


def audit_id(link: str, ti: Any) -> str:
    """Return the ID of the audit of a link by a task instance, with its run in readable form. It is the same in each retry,
    which continues the audit, and another one once the task instance is cleared: Airflow then raises `max_tries`."""
    of = f"{link} {ti.dag_id} {ti.run_id} {ti.task_id} {ti.map_index} {ti.max_tries}"
    digest = hashlib.blake2b(of.encode(), digest_size=8).hexdigest()
    shown = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{link}-{ti.run_id}").strip("-_")
    return f"{shown[: _ID_CHARACTERS - len(digest) - 1]}-{digest}".lstrip("-")


def _shown() -> "Callable[[str, AuditProgress | None], None]":
    """Return a function that logs the progress whenever another tenth is done, each event, and each problem."""
    tenths = -1
    problem = ""

    def show(text: str, progress: "AuditProgress | None") -> None:
        nonlocal tenths, problem
        if progress is not None and without_numbers(progress.problem) != problem:
            problem = without_numbers(progress.problem)
            if problem:
                log.warning("%s", progress.problem)
        if progress is None:
            if text != "audit":
                log.warning("%s", text)
        elif progress.chunks and int(progress.share * 10) > tenths:
            tenths = int(progress.share * 10)
            log.info("%d of %d chunks, %d differences", progress.done, progress.chunks, progress.unexplained)

    return show
