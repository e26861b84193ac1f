"""Files of applications in a cluster's file system: Spark's jars, and the files of each submission.

<directory>/strait-spark-<version>.zip                       Spark's jars, uploaded once
<directory>/<user>/.sparkStaging/<application id>/           created by Spark, mode 0700
    spec.json  log4j2.properties  …                          files for its containers
    stop                                                     exists: the application must end
"""

import re
import tempfile
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from strait.config.app_spec import Spec, parse_spec
from strait.config.yarn_settings import Yarn
from strait.errors import ConfigError, LaunchError
from strait.launch.spark_home import find_spark_submit
from strait.launch.yarn.commands import Commands
from strait.launch.yarn.properties import SPEC
from strait.launch.yarn.replies import Seen

STOP = "stop"
_MISSING = re.compile(r"^cat: .*: No such file or directory$", re.MULTILINE)


class Files:
    """The files of one link's applications. Every method takes seconds: each is a JVM."""

    def __init__(self, yarn: Yarn) -> None:
        self._yarn = yarn
        self._commands = Commands(yarn)

    def spark_jars(self) -> str:
        """Return the location of Spark's jars; upload them if they are not there yet.

        Raises:
            LaunchError: they cannot be uploaded.
        """
        if self._yarn.spark_jars is not None:
            return self._yarn.spark_jars
        archive = f"{self._yarn.directory}/strait-spark-{version('pyspark')}.zip"
        doing = f"YARN: uploading Spark's jars to {archive}"
        if self._commands.hadoop_fs(doing, "-test", "-e", archive).code == 0:
            return archive
        self._commands.require_fs(doing, "-mkdir", "-p", self._yarn.directory)
        with tempfile.TemporaryDirectory(prefix="strait-spark-") as scratch:
            local = Path(scratch) / archive.rpartition("/")[2]
            with zipfile.ZipFile(local, "w", zipfile.ZIP_STORED) as packed:  # jars are already compressed
                for jar in sorted((find_spark_submit().parents[1] / "jars").glob("*.jar")):
                    packed.write(jar, jar.name)
            done = self._commands.hadoop_fs(doing, "-put", str(local), archive)
        if done.code != 0 and self._commands.hadoop_fs(doing, "-test", "-e", archive).code != 0:
            raise LaunchError(f"{doing}: {done.cause}", hint="check `spark.yarn.directory`")  # no other host added it
        return archive

    def ask_to_stop(self, seen: Iterable[Seen]) -> None:
        """Ask applications to end on their own. No directory is created for one that has just ended."""
        for one in seen:
            self._commands.hadoop_fs(
                f"application {one.name}: asking it to end", "-touchz", f"{self._staging(one)}/{STOP}"
            )

    def remove(self, seen: Iterable[Seen]) -> None:
        """Remove the files of submissions that have ended.

        Raises:
            LaunchError: some of them are left.
        """
        if folders := [self._staging(one) for one in seen]:
            self._commands.require_fs("YARN: removing staging folders", "-rm", "-r", "-f", "-skipTrash", *folders)

    def spec(self, one: Seen) -> Spec | None:
        """Return the spec that a live application runs with; None if it was deleted or is from another version.

        Raises:
            LaunchError: it cannot be read now, which does not mean that the application has ended.
        """
        path = f"{self._staging(one)}/{SPEC}"
        doing = f"application {one.name}: reading its spec"
        done = self._commands.hadoop_fs(doing, "-cat", path)
        if done.code != 0:
            if _MISSING.search(done.complaints):
                return None
            raise LaunchError(
                f"{doing}: {done.cause}", hint="check that the file system of `spark.yarn.directory` answers"
            )
        try:
            return parse_spec(done.output, path)
        except ConfigError:
            return None

    def _staging(self, one: Seen) -> str:
        return f"{self._yarn.directory}/{one.user}/.sparkStaging/{one.id}"
