"""`strait applications`: the Spark applications of a link on this machine, and the results of their submissions."""

from collections.abc import Iterator
from typing import Any

from strait.cli.options import ChosenLink, Output, OutputOption, link_command
from strait.cli.printing import echo
from strait.cli.tables import plain_table
from strait.config import naming
from strait.config.home import home
from strait.config.links import Link, Spark
from strait.launch.base import Launcher
from strait.launch.launchers import launcher_for
from strait.launch.overview import overview
from strait.text import utc
from strait.waiting import unix_ms

OTHER_HOME = "set STRAIT_HOME as the process that submits has it, on that host"


@link_command
def applications(
    link: ChosenLink,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a link's Spark applications on this machine.

    Each with its last submissions, the causes of their ends, and the time of the next attempt if it keeps ending.
    With `-o wide`, a line for each submission.
    """
    name, found = link.name, list(_all(link.name, link.load().settings))
    if output.structured:
        output.write({"link": name, "applications": found})
        return
    if not found:
        echo(f"link {name}: no application was ever submitted in {home()}; {OTHER_HOME}")
        return

    rows = [row for one in found for row in _rows(one, every=output is Output.WIDE)]
    plain_table(["application", "state", "submitted", ">submissions", "cause"], rows)


def launchers(link: str, spark: Spark, pool: str | None = None) -> Iterator[Launcher]:
    """Yield the launcher of the DAGs' applications, on any host, and one for each `strait run` of the link, or of its
    pool, on this machine, whose drivers run here."""
    of_dags = home() / "applications"
    if spark.manager in ("yarn", "kubernetes"):  # the cluster lists all, from every host and command
        yield launcher_for(spark, of_dags)
        return
    if of_dags.is_dir() or spark.deploy_mode == "cluster":
        yield launcher_for(spark, of_dags)
    for directory in home().glob(f"run/{link if pool is None else f'pool.{pool}'}-*/applications"):
        yield launcher_for(spark.model_copy(update={"deploy_mode": "client"}), directory)


def _all(name: str, link: Link) -> Iterator[dict[str, Any]]:
    names = [
        naming.application_of(name, link.pool, group, standby=also)
        for group in sorted(link.groups)
        for also in (False, True)
    ]
    for launcher in launchers(name, link.spark, link.pool):
        for one in overview(launcher, list(dict.fromkeys(names)), unix_ms()):
            yield one if link.pool is None else one | {"links": _links_in(launcher, one["name"])}


def _links_in(launcher: Launcher, name: str) -> list[str]:
    """Return the links that run in a pool's application; none if its spec cannot be read."""
    found = launcher.state(name)
    spec = None if found is None else launcher.spec(found)
    return [] if spec is None else list(spec.links)


def _rows(one: dict[str, Any], *, every: bool) -> Iterator[list[str]]:
    """Yield the table rows of one application: one per submission if ``every``, else only the newest submission, with
    the latest known cause of an end even if the application runs again."""
    submissions = one["submissions"]
    causes = [submission["cause"] for submission in submissions if submission["cause"]]
    if one["not_before_ms"]:
        causes.insert(0, f"not submitted before {utc(one['not_before_ms'])}")
    for submission in submissions if every else submissions[:1]:
        cause = submission["cause"] if every else "; ".join(causes[: 2 if one["not_before_ms"] else 1])
        name = f"{one['name']} ({', '.join(one['links'])})" if one.get("links") else one["name"]
        yield [name, submission["state"], utc(submission["submitted_at_ms"]), str(len(submissions)), cause]
