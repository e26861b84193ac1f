"""Compares chunks of transformed topics: the transformation is evaluated as in the tasks of the slots, over the records that
the source has now.

    chunk -> rows of its source records -> projections in the JVM -> compared with the destination

All three steps are one task of Spark.
"""

import pickle
from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from strait.audit.chunks import Chunk
from strait.audit.task import failed
from strait.audit.task_result import ChunkResult
from strait.engine.detour.layout import AUDITED, HEADERS, TO_SPARK
from strait.errors import SetupError
from strait.spark.audit_task import compare_evaluated, source_rows
from strait.spark.evaluating import Refused, Transformed, begun, through
from strait.spark.evaluation_settings import require_settings


class TransformedAudit:
    """Compares the chunks of transformed topics. ``spec_path``, ``settings``: see `strait.spark.audit_task.compare_chunks`."""

    def __init__(self, session: SparkSession, spec_path: str, settings: str) -> None:
        self._session = session
        self._arguments = spec_path, settings
        self._problems: dict[int, str] = {}

    def compare(self, chunks: Sequence[Chunk]) -> list[ChunkResult]:
        """Compare chunks, each in a separate task."""
        topics = {chunk.facts.topic: _topic(chunk) for chunk in chunks}
        problems = {name: self._problem(topic) for name, topic in topics.items()}
        results = [failed(chunk, problem) for chunk in chunks if (problem := problems[chunk.facts.topic])]
        pickled = [(pickle.dumps(chunk),) for chunk in chunks if not problems[chunk.facts.topic]]
        if not pickled:
            return results
        given = self._session.sparkContext.parallelize(pickled, len(pickled))
        rows = self._session.createDataFrame(given, "chunk BINARY", verifySchema=False)
        made = begun(rows.mapInArrow(partial(source_rows, *self._arguments), f"{TO_SPARK}, {HEADERS}"))
        for name, topic in topics.items():
            if not problems[name]:
                made = through(made, topic)
        decided = made.select(*AUDITED)
        compared = decided.mapInArrow(partial(compare_evaluated, *self._arguments), "result BINARY")
        # The results were pickled by this audit's own tasks, as those of any RDD are.
        return results + [pickle.loads(bytes(row.result)) for row in compared.collect()]  # noqa: S301

    def _problem(self, topic: Transformed) -> str:
        """Return why a transformation cannot be evaluated; "": it can."""
        if topic.number not in self._problems:
            problem = ""
            try:
                require_settings(self._session)
                through(begun(self._session.createDataFrame([], TO_SPARK)), topic)
            except Refused as error:
                problem = f"its transformation is refused: {error}"
            except SetupError as error:
                problem = str(error)
            self._problems[topic.number] = problem
        return self._problems[topic.number]


def _topic(chunk: Chunk) -> Transformed:
    assert chunk.facts.transform is not None
    return Transformed(chunk.facts.topic, chunk.facts.transform)
