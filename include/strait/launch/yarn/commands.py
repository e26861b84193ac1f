"""Hadoop's and Spark's own commands, each a short-lived JVM: YARN has no other way to submit a Spark application, and
Hadoop's file systems have no protocol in common."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import strait
from strait.config.yarn_settings import Yarn
from strait.errors import LaunchError
from strait.launch.java import find_java, inherited
from strait.launch.spark_home import find_spark_submit
from strait.launch.submission import Submission
from strait.launch.yarn.properties import LOGGING
from strait.launch.yarn.site import conf_dir

_SUBMIT_SECONDS = 600.0  # the first submission uploads Spark's jars
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", f"-Dlog4j2.configurationFile={LOGGING}")
_TELLING = re.compile(r"(?:^|[\s.])(?P<what>\w*(?:Exception|Error): .+)")
_FS_MESSAGE = re.compile(r"^-?\w+: (?P<what>.+)$")


@dataclass(frozen=True, slots=True)
class Done:
    """Exit code and output of a command."""

    code: int
    output: bytes
    complaints: str

    @property
    def cause(self) -> str:
        """The line that best explains a failure."""
        lines = self.complaints.splitlines()
        for pattern in (_TELLING, _FS_MESSAGE):
            if found := next((match for line in lines if (match := pattern.search(line))), None):
                return " ".join(found["what"].split())
        return next((line.strip() for line in reversed(lines) if line.strip()), "no reason was given")


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands with one link's settings.

    Every method raises SetupError if this machine lacks Java, Spark or Hadoop's configuration.
    """

    yarn: Yarn

    def submit(self, name: str, new: Submission, job: Path, *arguments: str, own_code: bool) -> None:
        """Have Spark submit an application; return once YARN has accepted it.

        Args:
            own_code: whether the cluster's hosts have this code under the same path as here.

        Raises:
            LaunchError: it was not accepted.
        """
        spark_submit = find_spark_submit()
        command = [
            spark_submit,
            "--master",
            "yarn",
            "--deploy-mode",
            "cluster",
            "--properties-file",
            new.properties,
            job,
        ]
        environment = self._environment() | {
            "SPARK_HOME": str(spark_submit.parents[1]),
            "SPARK_LOCAL_DIRS": str(new.scratch),
            "SPARK_SUBMIT_OPTS": " ".join(_QUICK),
        }
        if own_code:
            environment["PYTHONPATH"] = str(Path(strait.__file__).parents[1])  # Spark passes it on to every container
        done = _run([*map(str, command), *arguments], environment, new.folder, f"application {name}")
        if done.code != 0:
            raise LaunchError(
                f"application {name}: submitting it to YARN: {done.cause}",
                hint="check the queue, its limits and rights, and `spark.yarn`",
            )

    def hadoop_fs(self, doing: str, *arguments: str) -> Done:
        """Run `hadoop fs` with these arguments.

        Raises:
            LaunchError: it cannot be run.
        """
        spark_home = find_spark_submit().parents[1]
        class_path = f"{conf_dir(self.yarn)}:{spark_home / 'jars'}/*"
        command = [str(find_java()), *_QUICK, "-cp", class_path, "org.apache.hadoop.fs.FsShell", *arguments]
        return _run(command, self._environment(), None, doing)

    def require_fs(self, doing: str, *arguments: str) -> None:
        """Run `hadoop fs` with these arguments. Raises LaunchError if it fails."""
        done = self.hadoop_fs(doing, *arguments)
        if done.code != 0:
            raise LaunchError(f"{doing}: {done.cause}", hint="check `spark.yarn.directory` and its user's rights")

    def _environment(self) -> dict[str, str]:
        kept = {
            key: value
            for key, value in inherited(find_java()).items()
            if not key.startswith(("PYSPARK", "SPARK")) and key != "PYTHONPATH"
        }
        user = {"HADOOP_USER_NAME": self.yarn.user} if self.yarn.user else {}
        return kept | user | {"HADOOP_CONF_DIR": str(conf_dir(self.yarn)), "YARN_CONF_DIR": str(conf_dir(self.yarn))}


def _run(command: list[str], environment: Mapping[str, str], folder: Path | None, doing: str) -> Done:
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SUBMIT_SECONDS,
            check=False,
        )
    except OSError as error:
        raise LaunchError(f"{doing}: running {command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise LaunchError(
            f"{doing}: {Path(command[0]).name} did not end within {_SUBMIT_SECONDS:g} s",
            hint="check that the ResourceManager and the file system answer",
        ) from None
    return Done(done.returncode, done.stdout, done.stderr.decode("utf-8", errors="replace"))
