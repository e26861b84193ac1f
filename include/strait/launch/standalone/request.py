"""The request to the master to start a driver, and its Spark properties. Pure.

A Standalone master starts a Java class on a worker. That class is `SparkSubmit` itself, which then runs the Python
application in client mode on that worker. Every user can read the request: the driver's command line shows it, and the
master keeps it in its recovery directory. So it contains the path of the spec only, and the link's own Spark
properties, which may be secrets, are given to the session later, except those in `_OF_THE_JVM`.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import strait
from strait.config.app_spec import Spec
from strait.config.links import Spark
from strait.launch import supervised
from strait.launch.package import ENVIRONMENT
from strait.launch.properties import LOGGING, evaluating, own_properties, standalone_properties

_OF_THE_JVM = (
    "spark.driver.cores",
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraJavaOptions",
    "spark.driver.extraLibraryPath",
    "spark.driver.memory",
    "spark.driver.supervise",
)
"""The worker needs these to start the driver's JVM; a session that has started ignores them."""

_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"


def session_properties(name: str, spec: Spec, spark: Spark) -> dict[str, str]:
    """Return the properties that the application gives to its session."""
    ours = own_properties("") | standalone_properties(spec.slots, spark.master) | {"spark.app.name": name}
    properties = evaluating(ours, evaluates=spec.evaluates)
    if spark.package is None:
        properties["spark.executorEnv.PYTHONPATH"] = _code()
    else:
        properties["spark.archives"] = f"{spark.package}#{ENVIRONMENT}"
    return {key: value for key, value in (properties | dict(spark.conf)).items() if key not in _OF_THE_JVM}


def create_request(name: str, folder: Path, job: Path, spark: Spark, spark_version: str) -> dict[str, Any]:
    """Return the body of a request to start the driver of a submission. The workers see ``folder``, the directory of
    the submission, and ``job``, the script that the driver's Python runs, under the given paths."""
    logging = f'"-Dlog4j2.configurationFile={folder / LOGGING.name}"'
    ours = {
        "spark.driver.defaultJavaOptions": own_properties(logging)["spark.driver.defaultJavaOptions"],
        "spark.driver.memory": spark.driver_memory,
        "spark.driver.cores": str(spark.standalone.driver_cores),
        "spark.driver.supervise": "true",
    }
    theirs = {key: value for key, value in spark.conf.items() if key in _OF_THE_JVM}
    fixed = {"spark.master": spark.master, "spark.app.name": name, "spark.submit.deployMode": "cluster"}
    return {
        "action": "CreateSubmissionRequest",
        "clientSparkVersion": spark_version,
        "appResource": "",  # all files are on the worker
        "mainClass": "org.apache.spark.deploy.SparkSubmit",
        "appArgs": _arguments(name, folder, job, spark),
        "environmentVariables": _environment(folder, spark),
        "sparkProperties": ours | theirs | fixed,
    }


def _arguments(name: str, folder: Path, job: Path, spark: Spark) -> list[str]:
    if spark.package is None:
        pythons, what = {"spark.pyspark.driver.python": sys.executable}, [str(job)]
    else:
        pythons, what = {"spark.pyspark.driver.python": _VERSION}, [str(folder / "unpack.py"), spark.package]
    pythons["spark.pyspark.python"] = _python(spark)
    conf = [word for key, value in pythons.items() for word in ("--conf", f"{key}={value}")]
    rest = ["--spec", str(folder / "spec.json"), "--properties", str(folder / "session.json")]
    return ["--master", spark.master, "--deploy-mode", "client", "--name", name, *conf, *what, *rest]


def _environment(folder: Path, spark: Spark) -> Mapping[str, str]:
    """Return the driver's environment. ``SPARK_ENV_LOADED`` prevents the worker's shell scripts from setting theirs
    again."""
    environment = {
        "SPARK_ENV_LOADED": "1",
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "PYSPARK_DRIVER_PYTHON": _python(spark),  # for Python that the JVM starts besides the application
    }
    code = {"PYTHONPATH": _code()} if spark.package is None else {}
    return environment | code | supervised.environment(folder)


def _python(spark: Spark) -> str:
    return sys.executable if spark.package is None else f"./{ENVIRONMENT}/bin/python"


def _code() -> str:
    return str(Path(strait.__file__).parents[1])
