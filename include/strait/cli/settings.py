"""`strait settings`: the current settings of a link, and their origins."""

import json
from typing import Annotated, Any

import typer
import yaml

from strait.cli.options import ChosenLink, Output, OutputOption, link_command
from strait.cli.printing import echo
from strait.control.plane import Control
from strait.errors import ClusterUnavailable
from strait.planning.plan.settings import InForce, in_force


@link_command
def settings(
    link: ChosenLink,
    from_file: Annotated[
        bool, typer.Option("--from-file", help="Show those of the links file, without connecting to a cluster.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the effective settings and their origins.

    Airflow's Variables and Connections can replace parts of the links file. Clusters' properties are not shown.
    """
    found = in_force(link.load().settings, None) if from_file else _in_force(link)
    data = _data(link.name, found)
    if output.structured:
        output.write(data)
        return

    told = [f"settings in {link.config}"] if from_file else _lines(found, str(link.config))
    echo("\n".join(f"# {line}" for line in told))
    echo(yaml.safe_dump({link.name: data["settings"]}, sort_keys=False, allow_unicode=True).rstrip())


def _in_force(link: ChosenLink) -> InForce:
    try:
        with Control.of(link.config, link.name) as control:
            return control.settings_in_force()
    except ClusterUnavailable as error:
        error.hint = "; ".join(filter(None, [error.hint, "--from-file shows the settings of the links file"]))
        raise


def _data(name: str, found: InForce) -> dict[str, Any]:
    planned = found.settings
    return {
        "link": name,
        "plan": found.version or None,
        "digest": planned and planned.digest,
        "topics_digest": planned and planned.topics_digest,
        "origins": planned and planned.origins,
        "same_topics": found.same_topics,
        "same_others": found.same_others,
        "settings": json.loads(found.link.model_dump_json(exclude_defaults=True)),
    }


def _lines(found: InForce, file: str) -> list[str]:
    if found.settings is None:
        why = f"plan {found.version} does not say what it was made of" if found.version else "no plan was published yet"
        return [f"{why}; these are the settings in {file}"]
    equal = {True: f"equal to {file}", False: f"other than in {file}"}
    elsewhere = [f"{what}: from {where}" for what, where in sorted(found.settings.origins.items())]
    topics = f"topics {found.settings.topics_digest}: {equal[found.same_topics]}"
    others = f"all others {found.settings.digest}: {equal[found.same_others]}"
    if not found.same_others:
        others += "; shown as they are here"
    return [f"plan {found.version}", *elsewhere, topics, others]
