"""`strait validate`: check a links file and, on request, the requests that its clusters' brokers serve."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from strait.cli.options import DEFAULT_FILE, ConfigOption, LinksArgument, Output, OutputOption, known_links
from strait.cli.printing import echo
from strait.config.complete import missing
from strait.config.links import LinksFile, load
from strait.errors import ConfigError
from strait.kafka.rejected_values import rejected_values
from strait.net.served import End
from strait.net.survey import Surveyed, survey
from strait.text import plural


def validate(
    links: LinksArgument = None,
    config: ConfigOption = DEFAULT_FILE,
    output: OutputOption = Output.TABLE,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also ask the clusters' brokers which requests they serve.")
    ] = False,
    airflow: Annotated[
        bool,
        typer.Option(
            "--airflow", help="Accept missing logins and topics: Connections and Variables of Airflow may add them."
        ),
    ] = False,
) -> None:
    """Check the links file, without connecting to any cluster unless asked to.

    Every mistake is listed, with the nearest valid key. Secrets and certificates that the file refers to are not read.
    With --connect, the exit code is 1 if a cluster cannot be reached or lacks a request without which nothing can be
    copied.
    """
    file = load(config)
    if rejected := rejected_properties(file):
        raise ConfigError(f"links file {config}", rejected, hint="set values that librdkafka accepts")
    names = known_links(config, links) if links else sorted(file.links)
    if not airflow and (lacks := list(missing(file, names))):
        raise ConfigError(
            f"links file {config}", lacks, hint="--airflow, if Connections and Variables of Airflow add this"
        )
    found = list(surveys(file, names)) if connect else []
    if output.structured:
        clusters = {"clusters": [_data(*one) for one in found]} if connect else {}
        output.write({"file": str(config), "valid": True, "links": sorted(file.links), **clusters})
    else:
        echo(f"{config}: valid: {', '.join(sorted(file.links)) or 'it has no links'}")
        for line in (line for one in found for line in _lines(*one)):
            echo(line)
    if not all(surveyed.copies and not surveyed.unasked for _, _, surveyed in found):
        raise typer.Exit(1)


def rejected_properties(file: LinksFile) -> list[str]:
    """Return a line for each property of a cluster whose value librdkafka rejects: no link of that cluster can run."""
    return [
        f"clusters.{cluster}: {line}"
        for cluster, properties in file.clusters.items()
        for line in rejected_values(cluster, properties)
    ]


def surveys(file: LinksFile, names: Sequence[str]) -> Iterator[tuple[str, End, Surveyed]]:
    """Query each cluster once for each end that it has in these links. Yield cluster, end and result."""
    ends: dict[tuple[str, End], None] = {}
    for name in names:
        link = file.links[name]
        ends |= {(link.source, "source"): None, (link.destination, "destination"): None}
    for cluster, end in ends:
        yield cluster, end, survey(file.clusters[cluster], cluster, end)


def _lines(cluster: str, end: End, surveyed: Surveyed) -> Iterator[str]:
    asked = len(surveyed.brokers)
    if not asked:
        told = "no broker was asked"
    elif not surveyed.lacks:
        told = plural(asked, "broker serves what Strait needs", "brokers serve what Strait needs")
    else:
        verdict = "records can be copied" if surveyed.copies else "nothing can be copied"
        told = f"{verdict}; {plural(asked, 'broker lacks', 'brokers lack')}:"
    yield f"{cluster} as {end}: {told}"
    for lack in surveyed.lacks:
        on = "" if len(lack.brokers) == asked else f" on {', '.join(lack.brokers)}"
        yield f"  {lack.name}{on}: {lack.need.cost}"
    for broker, why in surveyed.unasked.items():
        yield f"  {broker} was not asked: {why}"


def _data(cluster: str, end: End, surveyed: Surveyed) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "end": end,
        "copies": surveyed.copies,
        "brokers": list(surveyed.brokers),
        "lacks": [
            {
                "request": lack.need.request,
                "name": lack.name,
                "required": lack.need.is_required,
                "without": lack.need.without,
                "brokers": list(lack.brokers),
            }
            for lack in surveyed.lacks
        ],
        "unasked": dict(surveyed.unasked),
    }
