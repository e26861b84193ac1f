"""Have Spark create an application's driver pod: one short run of `spark-submit`, which does not wait for the pod."""

import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from strait.config.kubernetes_settings import Kubernetes
from strait.errors import LaunchError
from strait.launch.java import find_java, inherited
from strait.launch.properties import written
from strait.launch.spark_home import find_spark_submit

_SECONDS = 300.0
_LOGGING = Path(__file__).parents[1] / "log4j2.properties"
_QUICK = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"


class Tools(NamedTuple):
    """The programs on this host that a submission needs."""

    spark_submit: Path
    java: Path


def find() -> Tools:
    """Return the tools. Raises SetupError if this host has no Java or no Spark."""
    return Tools(find_spark_submit(), find_java())


def run(
    name: str,
    tools: Tools,
    master: str,
    settings: Kubernetes,
    files: Callable[[Path], Mapping[str, str]],
    job: Sequence[str],
) -> tuple[int, str]:
    """Run `spark-submit` and return its exit code and its output.

    Args:
        files: writes the files that the properties refer to into the given directory, and returns the properties.
        job: the entry point in the image, and its arguments.

    Raises:
        LaunchError: it cannot be run, or does not end.
    """
    spark_submit, java = tools
    with tempfile.TemporaryDirectory(prefix="strait-submit-") as here:
        folder = Path(here)
        properties = folder / "spark.properties"
        properties.write_text(written(files(folder)), encoding="utf-8")
        no_kubeconfig = folder / "kubeconfig"
        no_kubeconfig.touch()
        command = [spark_submit, "--master", master, "--deploy-mode", "cluster", "--properties-file", properties]
        try:
            done = subprocess.run(
                [*map(str, command), *job],
                env=_environment(settings, spark_submit, java, no_kubeconfig),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_SECONDS,
                check=False,
            )
        except OSError as error:
            raise LaunchError(f"application {name}: running {spark_submit}: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            raise LaunchError(f"application {name}: {spark_submit} did not end within {_SECONDS:g} s") from None
        return done.returncode, done.stdout.decode(errors="replace")


def _environment(settings: Kubernetes, spark_submit: Path, java: Path, no_kubeconfig: Path) -> dict[str, str]:
    return inherited(java) | {
        "SPARK_HOME": str(spark_submit.parents[1]),
        "SPARK_SUBMIT_OPTS": f'{_QUICK} "-Dlog4j2.configurationFile={_LOGGING}"',
        # Otherwise Spark's client uses ~/.kube/config, or the service account of the pod that it runs in.
        "KUBECONFIG": settings.kubeconfig or str(no_kubeconfig),
        "KUBERNETES_AUTH_TRYKUBECONFIG": "true" if settings.kubeconfig else "false",
        "KUBERNETES_AUTH_TRYSERVICEACCOUNT": "false",
    }
