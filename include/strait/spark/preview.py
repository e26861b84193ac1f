"""Evaluates the transformation of a topic for some of its records: the process of `strait.launch.preview`.

The same projections are evaluated as in the tasks of the slots, in two queries with the records in another order. If a
result differs, the transformation is not allowed: the list of allowed expressions has a mistake.
"""

import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from strait.config.route_names import topic_of
from strait.engine.detour.avro import Decoded, values_of
from strait.engine.detour.layout import FROM_SPARK, TO_SPARK, Kind
from strait.engine.detour.merging import merged
from strait.engine.detour.rows import kinds_of
from strait.launch.preview import Result, Sample, answer, placeholder, requested
from strait.spark.evaluating import Refused, Transformed, begun, through
from strait.spark.session import begin_session
from strait.state.transform import TopicTransform
from strait.text import plural
from strait.wire.columns import Columns, column, without_headers

_Results = dict[tuple[int, int], Result]


def main() -> None:
    """Read a request from standard input and write its result to standard output."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Spark's JVM inherits the other one
    logging.basicConfig(level=logging.ERROR)
    transforms, samples = requested(sys.stdin.buffer.read())
    session = begin_session().result()
    Path(sys.argv[1]).write_text(f"Spark evaluates {plural(len(samples), 'record')}, twice", encoding="utf-8")
    try:
        topics = [
            Transformed(name, TopicTransform.model_validate_json(json.dumps(transform)))
            for name, transform in transforms
        ]
        results = evaluate_twice(session, topics, samples)
        out.write(answer(results))
    except Refused as refused:
        out.write(answer((), str(refused)))
    out.close()
    session.stop()


def evaluate_twice(session: SparkSession, topics: Sequence[Transformed], samples: Sequence[Sample]) -> list[Result]:
    """Return the results of two evaluations that agree. Raises `Refused`."""
    first, second = _evaluate(session, topics, samples), _evaluate(session, topics, samples[::-1])
    for sample in samples:
        place = sample.partition, sample.offset
        for name in Result._fields:
            if getattr(first[place], name) != getattr(second[place], name):
                where = "where" if name == "kind" else name
                text = f"two evaluations of record {topic_of(topics[0].topic)}-{sample.partition} at offset {sample.offset} differ"
                raise Refused(f"{where}: {text}")
    return [first[sample.partition, sample.offset] for sample in samples]


def _evaluate(session: SparkSession, topics: Sequence[Transformed], samples: Sequence[Sample]) -> _Results:
    count, first = len(samples), topics[0].transform  # routes have one format
    keys, values = (column([getattr(sample, name) for sample in samples]) for name in ("key", "value"))
    fields: Sequence[bytes | None] = [None] * count
    if first.avro is not None:
        fields = Decoded(values_of(first.avro)).fields(values)
    kinds = kinds_of(first, values, count).tolist()
    rows = [
        (kind, one.number, *sample[:5], list(map(placeholder, one.transform.secrets)), parsed)  # as TO_SPARK has them
        for one in topics
        for kind, sample, parsed in zip(kinds, samples, fields, strict=True)
    ]
    made = begun(session.createDataFrame(rows, TO_SPARK))
    for one in topics:
        made = through(made, one)
    table = made.select("__number", "partition", *FROM_SPARK).toArrow()
    places = [(sample.partition, sample.offset) for sample in samples]
    originals = Columns(np.zeros(count, np.int64), keys, values, without_headers(count))
    found = dict.fromkeys(places, Result("left_out"))
    for one in topics:
        found |= _results(one, table.filter(pc.equal(table["__number"], one.number)), places, originals)
    return found


def _results(one: Transformed, made: pa.Table, places: Sequence[tuple[int, int]], originals: Columns) -> _Results:
    """Return the results of the records that are copied or malformed. ``places``: partition and offset of each original."""
    numbers = {place: number for number, place in enumerate(places)}
    at = np.array(
        [numbers[place] for place in zip(*(made[it].to_pylist() for it in ("partition", "offset")), strict=True)]
    )
    kinds = made["__out_kind"].to_numpy()
    found = {places[row]: Result("malformed") for row in at[kinds == Kind.MALFORMED]}
    if (copied := np.flatnonzero(kinds == Kind.RECORD)).size:
        copied = copied[np.argsort(at[copied])]
        (changed,) = made.select(FROM_SPARK).take(copied).combine_chunks().to_batches()
        records, bad = merged(one.transform, originals, at[copied], changed)
        for number, row in enumerate(at[copied]):
            copy = Result("copied", records.keys.at(number), records.values.at(number), one.topic)
            found[places[row]] = Result("malformed") if number in bad else copy
    return found


if __name__ == "__main__":
    main()
