"""The Spark properties of an application on YARN. Pure."""

import sys
from pathlib import Path

from strait.config.app_spec import Spec
from strait.config.spark import Spark
from strait.config.yarn_settings import Yarn
from strait.launch.applications import RESTART_LIMIT, RESTART_WINDOW_SECONDS
from strait.launch.package import ENVIRONMENT
from strait.launch.properties import TASK_ATTEMPTS, evaluating, own_properties
from strait.launch.yarn.replies import tag_of

SPEC = "spec.json"
"""Name of the spec's file in the working directory of the driver and of each executor."""

LOGGING = Path(__file__).parents[1] / "log4j2.properties"
_LOGGING_OPTION = f"-Dlog4j2.configurationFile={LOGGING.name}"
_PYTHON_MIB = 512
"""Memory besides a JVM's heap and a slot's buffers: for the rest of the JVM, and Python."""


def yarn_properties(name: str, spec: Spec, spec_path: Path, spark: Spark, yarn: Yarn, jars: str) -> dict[str, str]:
    """Return all properties of an application; the link's own `spark.conf` takes precedence.

    Args:
        spec_path: a file with the name `SPEC`.
        jars: location of Spark's jars; see `strait.launch.yarn.files.spark_jars`.
    """
    window = f"{RESTART_WINDOW_SECONDS:g}s"
    ours = (
        own_properties(_LOGGING_OPTION)
        | {
            "spark.app.name": name,
            "spark.driver.memory": spark.driver_memory,
            "spark.driver.memoryOverhead": f"{_PYTHON_MIB}m",
            # One container for each slot, so that they may spread over nodes.
            "spark.executor.instances": str(spec.slots),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.memoryOverhead": f"{(spec.slot_memory_bytes >> 20) + _PYTHON_MIB}m",
            "spark.executor.defaultJavaOptions": f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 {_LOGGING_OPTION}",
            # Otherwise the third executor that is lost in the life of an application, which may be years, ends it.
            "spark.executor.failuresValidityInterval": window,
            "spark.task.maxFailures": str(TASK_ATTEMPTS),
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",  # a node may have to fetch Spark's jars first
            "spark.yarn.maxAppAttempts": str(RESTART_LIMIT),
            "spark.yarn.am.attemptFailuresValidityInterval": window,
            "spark.yarn.queue": yarn.queue,
            "spark.yarn.stagingDir": yarn.directory,
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.yarn.tags": f"{yarn.tag},{tag_of(yarn.tag, name)}",
            "spark.yarn.jars" if jars.startswith("local:") else "spark.yarn.archive": jars,
            "spark.files": f"{spec_path},{LOGGING}",
        }
        | _python(spark)
    )
    return evaluating(ours, evaluates=spec.evaluates) | dict(spark.conf)


def _python(spark: Spark) -> dict[str, str]:
    if spark.package is None:
        return {"spark.pyspark.python": sys.executable}
    return {
        "spark.archives": f"{spark.package}#{ENVIRONMENT}",
        "spark.pyspark.python": f"./{ENVIRONMENT}/bin/python",
    }
