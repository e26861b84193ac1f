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
from pyspark.sql import SparkSession

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
    topic, transform, samples = requested(sys.stdin.buffer.read())
    session = begin_session().result()
    Path(sys.argv[1]).write_text(f"Spark evaluates {plural(len(samples), 'record')}, twice", encoding="utf-8")
    try:
        one = Transformed(topic, TopicTransform.model_validate_json(json.dumps(transform)))
        results = evaluate_twice(session, one, samples)
        out.write(answer(results))
    except Refused as refused:
        out.write(answer((), str(refused)))
    out.close()
    session.stop()


def evaluate_twice(session: SparkSession, one: Transformed, samples: Sequence[Sample]) -> list[Result]:
    """Return the results of two evaluations that agree. Raises `Refused`."""
    first, second = _evaluate(session, one, samples), _evaluate(session, one, samples[::-1])
    for sample in samples:
        place = sample.partition, sample.offset
        for name in Result._fields:
            if getattr(first[place], name) != getattr(second[place], name):
                where = "where" if name == "kind" else name
                text = f"two evaluations of record {one.topic}-{sample.partition} at offset {sample.offset} differ"
                raise Refused(f"{where}: {text}")
    return [first[sample.partition, sample.offset] for sample in samples]


def _evaluate(session: SparkSession, one: Transformed, samples: Sequence[Sample]) -> _Results:
    transform, count = one.transform, len(samples)
    secrets = [placeholder(name) for name in transform.secrets]
    keys, values = (column([getattr(sample, name) for sample in samples]) for name in ("key", "value"))
    fields: Sequence[bytes | None] = [None] * count
    if transform.avro is not None:
        fields = Decoded(values_of(transform.avro)).fields(values)
    rows = [
        (kind, one.number, *sample[:5], secrets, parsed)  # as TO_SPARK has them
        for kind, sample, parsed in zip(kinds_of(transform, values, count).tolist(), samples, fields, strict=True)
    ]
    places = [(sample.partition, sample.offset) for sample in samples]
    made = through(begun(session.createDataFrame(rows, TO_SPARK)), one).select("partition", *FROM_SPARK).toArrow()
    found_at = zip(made["partition"].to_pylist(), made["offset"].to_pylist(), strict=True)
    at = np.array([places.index(place) for place in found_at])
    found = dict.fromkeys(places, Result("left_out"))
    kinds = made["__out_kind"].to_numpy()
    for row in at[kinds == Kind.MALFORMED]:
        found[places[row]] = Result("malformed")
    if (copied := np.flatnonzero(kinds == Kind.RECORD)).size:
        copied = copied[np.argsort(at[copied])]
        (changed,) = made.select(FROM_SPARK).take(copied).combine_chunks().to_batches()
        originals = Columns(np.zeros(count, np.int64), keys, values, without_headers(count))
        records, bad = merged(transform, originals, at[copied], changed)
        for number, row in enumerate(at[copied]):
            copy = Result("copied", records.keys.at(number), records.values.at(number))
            found[places[row]] = Result("malformed") if number in bad else copy
    return found


if __name__ == "__main__":
    main()
