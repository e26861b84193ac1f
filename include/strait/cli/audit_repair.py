"""`strait audit repair`: copy topics that differ again, or append to compacted ones."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from strait.audit.replicas import INTACT
from strait.cli.completing import topics_that_start_with
from strait.cli.options import DEFAULT_FILE, ConfigOption, Output, OutputOption, YesOption
from strait.cli.printing import confirm, echo
from strait.cli.tables import plain_table
from strait.config.home import home
from strait.control.repair.carrying_out import Repaired, repair
from strait.control.repair.plan import SUFFIX, RepairPlan, repair_plan
from strait.state.link_handle import ConfiguredLink
from strait.text import plural

_SHOWN_DAMAGED = 20
_WAYS = {"copy": "copy again", "append": "append newest values"}


def repair_(
    audit: Annotated[
        str, typer.Argument(metavar="AUDIT", help="ID of the audit, or its directory.", show_default=False)
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            help="Repair only this source topic; may be repeated.",
            show_default=False,
            autocompletion=topics_that_start_with,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")] = False,
    yes: YesOption = False,
    config: ConfigOption = DEFAULT_FILE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Repair topics that an audit found different.

    The link must be stopped. A topic is copied again into a new one, with `.repaired` after its name; consumer groups get
    their offsets there. To a compacted topic, the newest value of each key that differs is appended. Exits with 1 if the
    offsets of a group are left to you.
    """
    directory = Path(audit)
    plan = repair_plan(directory if directory.parent != Path() else home() / "audits" / audit, topic or ())
    if dry_run or not plan.topics:
        _show_plan(plan, output)
        return
    if not yes:
        _show_plan(plan, Output.TABLE, err=True)
        confirm(f"Repair {plural(len(plan.topics), 'topic')} of link {plan.audit.link}?", err=True)
    done = repair(ConfiguredLink.load(config, plan.audit.link), plan, lambda line: echo(line, err=True))
    if output.structured:
        output.write([asdict(one) for one in done])
    else:
        for one in done:
            _show(one, plan.audit.link)
    if any(one.groups_left for one in done):
        raise typer.Exit(1)


def _show_plan(plan: RepairPlan, output: Output, *, err: bool = False) -> None:
    if output.structured:
        shown = [
            {
                "topic": one.topic,
                "way": one.way,
                "into": one.into,
                "differences": dict(one.differences),
                "damaged": list(one.damaged),
            }
            for one in plan.topics
        ]
        output.write({"audit": plan.audit.id, "link": plan.audit.link, "topics": shown})
        return
    if not plan.topics:
        echo(f"audit {plan.audit.id} found no difference without an explanation")
        return
    rows = (
        [
            one.topic,
            "; ".join(f"{count:,} {kind}" for kind, count in sorted(one.differences.items())),
            _WAYS[one.way],
            one.into,
        ]
        for one in plan.topics
    )
    plain_table(["topic", "differences", "repair", "into"], rows, err=err)
    damaged = [line for one in plan.topics for line in one.damaged]
    for line in damaged[:_SHOWN_DAMAGED]:
        echo(f"damaged: {line}", err=err)
    if len(damaged) > _SHOWN_DAMAGED:
        echo(f"and {len(damaged) - _SHOWN_DAMAGED:,} more damaged batches", err=err)
    if any(INTACT in line for line in damaged):
        echo(
            "where a replica is intact, no repair is needed: make its broker the leader, have the other broker fetch its "
            "replica again, and audit again",
            err=err,
        )


def _show(one: Repaired, link: str) -> None:
    if one.way == "append":
        echo(
            f"{one.topic}: appended {plural(one.records, 'record')} to {one.into}; run `strait start {link}`, and audit again"
        )
        return
    echo(f"{one.topic}: copied {plural(one.records, 'record')} into {one.into}, and compared them")
    for group, count in sorted(one.groups.items()):
        echo(f"group {group}: continues in {one.into} ({plural(count, 'partition')})")
    for group, why in sorted(one.groups_left.items()):
        echo(f"group {group}: {why}", err=True)
    echo(
        f"next: in the topic rule of {one.topic} set `naming: {{policy: suffix, suffix: {SUFFIX}}}` if the topic's name was the "
        f"source's, so that it is replicated to {one.into}; run `strait apply {link}` and `strait start {link}`; point "
        f"consumers to {one.into}"
    )
