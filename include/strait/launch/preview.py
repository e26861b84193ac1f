"""Evaluates a topic's transformation for a few records in a process with Spark, which ends with its result.

Records go there and back through pipes. Secrets do not go there: expressions get a placeholder for each, so no result can
show one, and the host need not have their files.
"""

import base64
import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from strait.config.links import Spark
from strait.errors import LaunchError
from strait.launch.cause import cause_of
from strait.launch.java import find_java, inherited
from strait.launch.properties import spark_environment, spark_properties, written
from strait.launch.spark_home import find_spark_submit

_SECONDS = 300.0
_TELL_SECONDS = 0.5
_MODULE = "strait.spark.preview"


class Sample(NamedTuple):
    """A record of the source; ``headers``: their names and values."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Result(NamedTuple):
    """The result for a record; ``key`` and ``value``: those on the destination, None unless it is copied. ``name``: the topic
    or route that copies it."""

    kind: Literal["copied", "left_out", "malformed"]
    key: bytes | None = None
    value: bytes | None = None
    name: str = ""


class Evaluated(NamedTuple):
    """Results, in the order of the records. ``refused``: if there are none, the expression that is not allowed, and the reason."""

    results: Sequence[Result] = ()
    refused: str = ""


def placeholder(secret: str) -> str:
    """Return the text that replaces a secret."""
    return f"<secret.{secret}>"


def evaluate(
    transforms: Mapping[str, Mapping[str, Any]],
    samples: Sequence[Sample],
    spark: Spark,
    progress: Callable[[str], None] = lambda _: None,
) -> Evaluated:
    """Evaluate the transformations for these records of a topic, as the tasks of the link's slots do. At most one of them may
    copy a record.

    Args:
        transforms: the topic, or its routes -> a `TopicTransform` as JSON.
        progress: called about twice a second with the activity of the process.

    Raises:
        LaunchError: the process fails.
        SetupError: this host has no Spark or no Java.
    """
    request = {
        "transforms": [[name, dict(transform)] for name, transform in transforms.items()],
        "samples": [(one[:3], _text(one.key), _text(one.value)) for one in samples],
    }
    found = json.loads(_run(json.dumps(request).encode(), spark, progress))
    results = [Result(kind, _bytes(key), _bytes(value), name) for kind, key, value, name in found["results"]]
    return Evaluated(results, found["refused"])


def requested(data: bytes) -> tuple[list[tuple[str, Mapping[str, Any]]], list[Sample]]:
    """Return the transformations by topic or route, and the records of a request; in the process with Spark."""
    request = json.loads(data)
    samples = [
        Sample(partition, offset, at_ms, _bytes(key), _bytes(value))
        for (partition, offset, at_ms), key, value in request["samples"]
    ]
    return [(name, transform) for name, transform in request["transforms"]], samples


def answer(results: Iterable[Result], refused: str = "") -> bytes:
    """Return the result that the process with Spark writes."""
    rows = [(one.kind, _text(one.key), _text(one.value), one.name) for one in results]
    return json.dumps({"results": rows, "refused": refused}).encode()


def _run(request: bytes, spark: Spark, progress: Callable[[str], None]) -> bytes:
    spark_submit, java = find_spark_submit(), find_java()
    with tempfile.TemporaryDirectory(prefix="strait-preview-") as scratch:
        properties = Path(scratch) / "spark.properties"
        alone = spark.model_copy(update={"master": "local", "conf": {"spark.master": "local[1]"}})
        properties.write_text(written(spark_properties("strait-preview", 1, alone, Path(scratch))), encoding="utf-8")
        stage = Path(scratch) / "stage"
        with subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(stage)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(alone, Path(scratch), spark_submit, java) | _arguments(properties),
        ) as process:
            try:
                result, errors = _results(process, request, stage, progress)
            except BaseException:
                process.kill()
                raise
    if process.returncode or not result:
        cause = cause_of(process.returncode, errors.decode(errors="replace"), None)
        raise LaunchError(f"preview: Spark has ended: {cause}", hint="`strait validate` checks Java and PySpark")
    return result


def _results(
    process: "subprocess.Popen[bytes]", request: bytes, stage: Path, progress: Callable[[str], None]
) -> tuple[bytes, bytes]:
    """Return the output and the errors of a process, once it has ended. ``stage``: the file with its present activity."""
    began, given = time.monotonic(), process.stdin
    process.stdin = None  # or `communicate` writes, of which it forgets the rest if it is called again
    assert given is not None
    threading.Thread(target=_give, args=(given, request), daemon=True).start()
    while True:
        try:
            return process.communicate(timeout=_TELL_SECONDS)
        except subprocess.TimeoutExpired:
            seconds = time.monotonic() - began
            if seconds > _SECONDS:
                raise LaunchError(f"preview: Spark has no result after {_SECONDS:.0f} s", hint="try again") from None
            said = stage.read_text(encoding="utf-8") if stage.exists() else ""
            progress(f"preview: {said or 'Spark starts'} ({seconds:.0f} s)")


def _give(pipe: IO[bytes], request: bytes) -> None:
    with contextlib.suppress(OSError), pipe:  # the process may have ended
        pipe.write(request)


def _arguments(properties: Path) -> dict[str, str]:
    return {"PYSPARK_SUBMIT_ARGS": f'--properties-file "{properties}" pyspark-shell'}


def _environment(spark: Spark, scratch: Path, spark_submit: Path, java: Path) -> dict[str, str]:
    return inherited(java) | spark_environment(spark, scratch) | {"SPARK_HOME": str(spark_submit.parents[1])}


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: Any) -> bytes | None:
    return None if text is None else base64.b64decode(text)
