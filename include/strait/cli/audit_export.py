"""`strait audit export`: write the records that a destination lacks to a file."""

from pathlib import Path
from typing import Annotated

import typer

from strait.audit.link_state import Ends
from strait.audit.observing import require_same_topics
from strait.cli.options import DEFAULT_FILE, ConfigOption, Output, OutputOption
from strait.cli.printing import echo
from strait.config.home import home
from strait.config.links import load
from strait.control import audit_export, tail_export
from strait.control.audit import require_clusters
from strait.text import plural


def export(
    audit: Annotated[
        str, typer.Argument(metavar="AUDIT", help="ID of the audit, or its directory.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="Write to this new file, as lines of JSON.", show_default=False)],
    config: ConfigOption = DEFAULT_FILE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Write records that the destination lacks to a file.

    These are the source records that an audit found missing or different, without an explanation on record. The format is
    that of `strait tail export`. Changes no topic.
    """
    directory = Path(audit)
    found = audit_export.lacking(directory if directory.parent != Path() else home() / "audits" / audit)
    plan, file = found.plan, load(config)
    require_clusters(file, plan.source, plan.destination)
    source, destination = file.clusters[plan.source], file.clusters[plan.destination]
    require_same_topics(Ends(plan.source, source, plan.destination, destination), plan)
    for name in found.transformed:
        echo(f"{name}: the link transforms its records; the file has them as they are on the source", err=True)
    exported = tail_export.to_file(out, audit_export.records(source, plan.source, found.ranges)).total()
    if output.structured:
        output.write({"exported": exported, "lacking": found.count, "to": str(out)})
    else:
        left = found.count - exported
        gone = f"; the source has deleted {left:,} more" if left else ""
        echo(f"exported {plural(exported, 'record')} of {plural(len(found.ranges), 'partition')} to file {out}{gone}")
