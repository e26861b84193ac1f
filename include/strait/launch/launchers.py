"""Which way of running applications a link asks for."""

from pathlib import Path

from strait.config.links import Spark
from strait.errors import ConfigError
from strait.launch.base import Launcher
from strait.launch.local import LocalLauncher
from strait.launch.standalone.launcher import StandaloneLauncher


def launcher_for(spark: Spark, directory: Path, *, parent_pid: int | None = None) -> Launcher:
    """The launcher of a link's applications.

    Args:
        spark: where they run.
        directory: what the launcher keeps of its submissions; two of one directory know of each other's.
        parent_pid: pid of the process that applications may not outlive; None lets them run on. Their drivers are then on
            this host, whatever the link's `deploy_mode` says, since another could not see that process.

    Raises:
        ConfigError: a Connection names the master, and nobody has read it.
    """
    if spark.spark_conn_id is not None:
        raise ConfigError(
            f"spark.spark_conn_id: {spark.spark_conn_id}",
            ["only Airflow can read a Connection"],
            hint="use `strait_<link>`'s DAGs, or set `spark.master` in the links file",
        )
    if spark.deploy_mode == "cluster" and parent_pid is None:
        return StandaloneLauncher(spark, directory)
    return LocalLauncher(directory, parent_pid=parent_pid)
