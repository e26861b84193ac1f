"""Files that the driver writes and reads itself, through Hadoop's file systems, like Spark's own writer."""

from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from strait.errors import SetupError
from strait.spark.failure import root_cause


class HadoopFiles:
    """The files below one directory. Raises (every method): SetupError.

    Args:
        root: path or Hadoop URI of the directory.
        name: the files' name in errors; ``hint``: the action that corrects one.
    """

    def __init__(self, session: SparkSession, root: str, name: str, hint: str) -> None:
        self._session = session
        self._root = root
        self._name = name
        self._hint = hint

    def prepare(self, folder: str = "") -> None:
        """Create the directory, or one below it."""
        try:
            made = self._file_system().mkdirs(self._path(f"{self._root}/{folder}"))
        except Py4JError as error:
            raise self._failed(error) from error
        if not made:
            raise SetupError(f"{self._name} {self._root}: cannot be made", hint=self._hint)

    def write(self, folder: str, name: str, data: bytes) -> None:
        """Write a file, which appears once it is complete, in place of one with this name."""
        below = f"{self._root}/{folder}" if folder else self._root
        try:
            system = self._file_system()
            hidden, final = self._path(f"{below}/.{name}"), self._path(f"{below}/{name}")
            stream = system.create(hidden, True)
            try:
                stream.write(bytearray(data))
            finally:
                stream.close()
            system.delete(final, False)
            if not system.rename(hidden, final):
                raise SetupError(f"{self._name} {below}: {name} could not be renamed", hint=self._hint)
        except Py4JError as error:
            raise self._failed(error) from error

    def read(self, folder: str, name: str) -> bytes | None:
        """Return the content of a file; None if there is none."""
        path = self._path(f"{self._root}/{folder}/{name}" if folder else f"{self._root}/{name}")
        jvm: Any = self._session._jvm  # noqa: SLF001
        try:
            system = self._file_system()
            if not system.exists(path):
                return None
            stream = system.open(path)
            try:
                return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()
        except Py4JError as error:
            raise self._failed(error) from error

    def names(self, folder: str) -> list[str]:
        """Return the names of the complete files in a directory, sorted."""
        path = self._path(f"{self._root}/{folder}")
        try:
            system = self._file_system()
            found = [str(one.getPath().getName()) for one in system.listStatus(path)] if system.exists(path) else []
        except Py4JError as error:
            raise self._failed(error) from error
        return sorted(name for name in found if not name.startswith("."))

    def matching(self, pattern: str) -> list[str]:
        """Return the paths below the directory that match a glob, sorted."""
        try:
            found = self._file_system().globStatus(self._path(f"{self._root}/{pattern}"))
        except Py4JError as error:
            raise self._failed(error) from error
        return sorted(str(one.getPath().toString()) for one in found or ())

    def _file_system(self) -> Any:
        context: Any = self._session.sparkContext
        system = self._path(self._root).getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
        system.setWriteChecksum(False)  # a local file system would add a checksum file to each
        return system

    def _path(self, text: str) -> Any:
        jvm: Any = self._session._jvm  # noqa: SLF001
        return jvm.org.apache.hadoop.fs.Path(text)

    def _failed(self, error: Py4JError) -> SetupError:
        return SetupError(f"{self._name} {self._root}: {root_cause(str(error))}", hint=self._hint)
