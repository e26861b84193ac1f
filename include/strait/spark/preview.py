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

from pyspark.sql import SparkSession

from strait.engine.detour.avro import Decoded, put_back, values_of
from strait.engine.detour.layout import FROM_SPARK, TO_SPARK, Kind
from strait.launch.preview import Result, Sample, answer, placeholder, requested
from strait.spark.evaluating import Refused, Transformed, begun, through
from strait.spark.session import begin_session
from strait.state.transform import TopicTransform
from strait.text import plural
from strait.wire.columns import NO_HEADERS, column

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
    secrets = [placeholder(name) for name in one.transform.secrets]
    avro, values = one.transform.avro, column([sample.value for sample in samples])
    fields: Sequence[bytes | None] = [None] * len(samples)
    if avro is not None:
        fields = Decoded(values_of(avro)).fields(values)
    rows = [
        (0, int(Kind.RECORD), one.number, *sample[:5], NO_HEADERS, secrets, parsed)  # as TO_SPARK has them
        for sample, parsed in zip(samples, fields, strict=True)
    ]
    found: _Results = {(row[3], row[4]): Result("left_out") for row in rows}
    made = through(begun(session.createDataFrame(rows, TO_SPARK)), one)
    for partition, _, kind, offset, _, key, value, _, changed in made.select("partition", *FROM_SPARK).collect():
        if kind == Kind.MALFORMED:
            found[partition, offset] = Result("malformed")
        elif kind == Kind.RECORD:
            result, bad = _bytes(value), list[int]()
            if avro is not None and changed is not None:
                contents, bad = put_back(
                    values_of(avro), list(one.transform.set_fields), column([result]), column([changed])
                )
                result = contents.at(0)
            found[partition, offset] = Result("malformed") if bad else Result("copied", _bytes(key), result)
    return found


def _bytes(data: bytes | bytearray | None) -> bytes | None:
    return None if data is None else bytes(data)


if __name__ == "__main__":
    main()
