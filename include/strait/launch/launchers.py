"""Select the launcher that a link's settings ask for."""

import logging
from dataclasses import dataclass
from pathlib import Path

from strait.config.links import Spark
from strait.errors import ConfigError, StraitError
from strait.launch import submission
from strait.launch.base import Launcher, State
from strait.launch.kubernetes.launcher import KubernetesLauncher
from strait.launch.local import LocalLauncher
from strait.launch.standalone.launcher import StandaloneLauncher
from strait.launch.yarn.launcher import YarnLauncher

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The outcome of a search for an application on another cluster.

    Attributes:
        on: the cluster on which it was stopped; "": it did not run.
        sure: nothing of it runs there any more; False: the cluster did not respond.
    """

    on: str = ""
    sure: bool = True


def end_elsewhere(name: str, spark: Spark, directory: Path) -> str:
    """Stop the application of this name that runs on the cluster of the link's earlier settings. Return a line that
    reports it, or "". A cluster that does not respond is skipped: it may be permanently down, and two applications do
    no harm.

    Raises:
        LaunchError: some part of it could not be stopped.
    """
    on = ended_elsewhere(name, spark, directory).on
    return f"{name}: ended on {on}, {spark.master} is asked for now" if on else ""


def ended_elsewhere(name: str, spark: Spark, directory: Path) -> Elsewhere:
    """Do the same as `end_elsewhere`. A cluster on which the application was seen ended is not asked again."""
    kept = submission.of_name(directory / name)
    if not kept or _place(before := submission.place_of(kept[0])) == _place(spark) or submission.is_over(kept[0]):
        return Elsewhere()
    try:
        earlier = launcher_for(before, directory)
        found = earlier.state(name)
    except StraitError as error:  # its credentials or configuration may be deleted, too
        log.warning("application %s: looking for it on %s: %s", name, before.master, error)
        return Elsewhere(sure=False)
    if found is not None and found.state is State.UNKNOWN:
        log.warning("application %s: looking for it on %s: it does not respond", name, before.master)
        return Elsewhere(sure=False)
    alive = found is not None and found.state.alive
    if alive:
        earlier.stop(name)
    submission.mark_over(kept[0])
    return Elsewhere(before.master if alive else "")


def _place(spark: Spark) -> tuple[object, ...]:
    """Return the identity of the place that applications run in. Drivers in client mode are all on this host."""
    if spark.deploy_mode != "cluster":
        return ()
    yarn, kubernetes = spark.yarn, spark.kubernetes
    on_yarn = () if yarn is None else (yarn.hadoop_conf_dir, yarn.resource_manager, yarn.tag, yarn.directory)
    in_kubernetes = () if kubernetes is None else (kubernetes.namespace,)
    return (spark.master, spark.deploy_mode, *on_yarn, *in_kubernetes)


def launcher_for(spark: Spark, directory: Path, *, parent_pid: int | None = None) -> Launcher:
    """Return the launcher of a link's applications.

    Args:
        spark: the link's settings for its applications.
        directory: directory for the launcher's submissions; launchers with the same directory know of each other's.
        parent_pid: pid of the process that applications must not outlive; None lets them continue. Their drivers then
            run on this host, regardless of the link's `deploy_mode`, since a remote driver could not see that process.
            On YARN and in Kubernetes, which have no other mode, applications outlive a process that is killed.

    Raises:
        ConfigError: a Connection names the master, and was not read.
    """
    if spark.spark_conn_id is not None:
        raise ConfigError(
            f"spark.spark_conn_id: {spark.spark_conn_id}",
            ["only Airflow can read a Connection"],
            hint="use `strait_<link>`'s DAGs, or set `spark.master` in the links file",
        )
    if spark.yarn is not None and spark.manager == "yarn":
        return YarnLauncher(spark, spark.yarn, directory)
    if spark.kubernetes is not None and spark.manager == "kubernetes":
        return KubernetesLauncher(spark, spark.kubernetes, directory)
    if spark.deploy_mode == "cluster" and parent_pid is None:
        return StandaloneLauncher(spark, directory)
    return LocalLauncher(directory, parent_pid=parent_pid)
