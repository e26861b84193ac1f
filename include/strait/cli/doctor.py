"""`strait doctor`: check this host, the links file and the clusters for the prerequisites of Strait."""

import os
from collections.abc import Iterator
from pathlib import Path

import typer

from strait.cli.options import DEFAULT_FILE, ConfigOption, Output, OutputOption
from strait.cli.tables import plain_table
from strait.cli.validate import rejected_properties, surveys
from strait.config.links import LinksFile, load
from strait.control.link_rights import link_rights
from strait.embedded.airflow_health import components_at
from strait.errors import ConfigError, SetupError, StraitError
from strait.launch.host import Check, Verdict, checks
from strait.net.survey import Surveyed
from strait.state.link_handle import ConfiguredLink
from strait.text import plural

_CORRECT = "correct it, then run `strait validate`"
_NAMED = 5  # missing permissions that are named


def doctor(context: typer.Context, config: ConfigOption = DEFAULT_FILE, output: OutputOption = Output.TABLE) -> None:
    """Check this host, the links file and its clusters, and suggest remedies.

    Also checks Airflow's components if `AIRFLOW__API__BASE_URL` has its address. Of the clusters, the requests that their
    brokers serve and the permissions on each link's topics are checked. Exits with 1 if a requirement of Strait is missing; warnings do not count.
    """
    source = context.get_parameter_source("config")
    # by name: the enumeration is click's, or typer's copy of it
    named = source is not None and source.name != "DEFAULT"
    found = [*checks(Path.cwd()), *_airflow(), *_links(config, named=named)]
    if output.structured:
        output.write({"checks": [check._asdict() for check in found]})
    else:
        plain_table(
            ("check", "verdict", "found", "what to do"),
            ((check.subject, check.verdict, check.found, check.remedy) for check in found),
        )
    if any(check.verdict is Verdict.FAILED for check in found):
        raise typer.Exit(1)


def _airflow() -> Iterator[Check]:
    """Check Airflow's components, if the environment has its address."""
    url = os.environ.get("AIRFLOW__API__BASE_URL", "")
    if not url:
        return
    try:
        components = components_at(url)
    except SetupError as error:
        yield Check("Airflow", Verdict.FAILED, error.message, error.hint)
        return
    problems = [one.problem for one in components if one.problem]
    remedy = "start it, and let a service manager restart it" if problems else ""
    verdict = Verdict.FAILED if problems else Verdict.OK
    yield Check("Airflow", verdict, "; ".join(problems) or f"{len(components)} components send heartbeats", remedy)


def _links(config: Path, *, named: bool) -> Iterator[Check]:
    """Check the links file and its clusters. Without one, only the host is checked, unless an option or the environment
    names the file."""
    if not named and not config.exists():
        yield Check(
            "links file", Verdict.WARNING, f"{config}: there is none", "give it with -f; `strait schema` describes it"
        )
        return
    try:
        file = load(config)
    except ConfigError as error:
        yield Check("links file", Verdict.FAILED, error.in_one_line, _CORRECT)
        return
    if rejected := rejected_properties(file):
        yield Check("links file", Verdict.FAILED, f"{config}: {'; '.join(rejected)}", _CORRECT)
        return
    yield Check("links file", Verdict.OK, f"{config}: {', '.join(sorted(file.links))}")
    answering: dict[tuple[str, str], bool] = {}
    for cluster, end, surveyed in surveys(file, sorted(file.links)):
        answering[cluster, end] = surveyed.copies
        yield _cluster(f"{cluster} as {end}", surveyed)
    for name, link in sorted(file.links.items()):
        if answering[link.source, "source"] and answering[link.destination, "destination"]:
            yield _rights(file, name)


def _rights(file: LinksFile, name: str) -> Check:
    subject = f"rights of {name}"
    settings = file.links[name].topics
    try:
        found = link_rights(ConfiguredLink.of(file, name))
    except StraitError as error:
        return Check(subject, Verdict.WARNING, error.message, error.hint)
    if not found.topics and not found.lacking and (settings.include or settings.regex):
        return Check(
            subject,
            Verdict.WARNING,
            "no topic of the source that `topics` selects is visible",
            "if there are any, grant DESCRIBE on them to the link's principal",
        )
    if not found.lacking:
        return Check(subject, Verdict.OK, plural(found.topics, "topic"))
    more = f", and {len(found.lacking) - _NAMED} more" if len(found.lacking) > _NAMED else ""
    return Check(
        subject,
        Verdict.FAILED,
        f"lacks {'; '.join(found.lacking[:_NAMED])}{more}",
        "grant this to the link's principal",
    )


def _cluster(subject: str, surveyed: Surveyed) -> Check:
    if not surveyed.brokers:
        return Check(subject, Verdict.FAILED, "; ".join(surveyed.unasked.values()), "correct the cluster's properties")
    asked = plural(len(surveyed.brokers), "broker answers", "brokers answer")
    if not surveyed.copies:
        names = ", ".join(lack.name for lack in surveyed.lacks if lack.need.is_required)
        return Check(subject, Verdict.FAILED, f"{asked}, without {names}", "upgrade them: nothing can be copied")
    if surveyed.unasked:
        return Check(
            subject, Verdict.WARNING, f"{asked}; {'; '.join(surveyed.unasked.values())}", "see to these brokers"
        )
    if surveyed.lacks:
        names = ", ".join(lack.name for lack in surveyed.lacks)
        return Check(
            subject, Verdict.WARNING, f"{asked}, without {names}", "`strait validate --connect` says what that costs"
        )
    return Check(subject, Verdict.OK, asked)
