"""`strait version`: the versions of Strait and of its platform, and the directories that Airflow reads."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from strait import __version__
from strait.cli.options import Output, OutputOption
from strait.cli.printing import echo
from strait.config.home import home, shared


def version(output: OutputOption = Output.TABLE) -> None:
    """Show the versions of Strait, Python, Spark and Airflow.

    Also the directories of DAGs, plugins and alert rules, for Airflow's and Prometheus' configuration.
    """
    found: dict[str, str | None] = {"strait": __version__, "python": platform.python_version()}
    found |= {name: _installed(package) for name, package in (("spark", "pyspark"), ("airflow", "apache-airflow"))}
    places: dict[str, str | None] = {name: str(shared() / name) for name in ("dags", "plugins")}
    places |= {"monitoring": str(shared() / "docs" / "monitoring"), "home": str(home())}
    if output.structured:
        output.write(found | places)
        return
    for name, value in (found | places).items():
        echo(f"{name:<10}  {value or 'not installed'}")


def _installed(package: str) -> str | None:
    try:
        return version_of(package)
    except PackageNotFoundError:
        return None
