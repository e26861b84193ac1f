"""The detour of transformed records: work in, results back, over real threads and a real socket; Spark is a function."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from strait.engine.detour import merging
from strait.engine.detour.beside import copied_beside
from strait.engine.detour.collector import collect
from strait.engine.detour.exchange import Exchange
from strait.engine.detour.layout import HANDED_ON, Kind
from strait.engine.evaluation import NOTHING, Evaluators, Made, MadeBatch, Malformed, Refusal, Work
from strait.errors import SetupError
from strait.launch.properties import own_properties
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.state.transform import TopicTransform
from strait.wire import columns
from strait.wire.batch import Batch, parse
from strait.wire.columns import Opened
from strait.wire.records import Record, build_batch, read_records
from strait.wire.shapes import Stretch
from support.model.racing import as_spark_does, transformed

TRANSFORM = TopicTransform(where="*", key="of the model", value="of the model")
NUMBER = TRANSFORM.number("t")
SECONDS = 20.0


def work(first: int, count: int, *, transform: TopicTransform = TRANSFORM, codec: int = 3) -> Work:
    records = [Record(first + 2 * n, 1_000 + n, b"k%d" % n, b"value %d" % n, ()) for n in range(count)]
    batch = parse(memoryview(build_batch(records, 3)))
    return Work("t", 0, transform, [batch], [Stretch(record.offset, 1) for record in records], codec, 1 << 20)


def expected(first: int, count: int) -> list[Record | int]:
    records = [Record(first + 2 * n, 1_000 + n, b"k%d" % n, b"value %d" % n, ()) for n in range(count)]
    made = [(record.offset, transformed(record)) for record in records]
    return [offset if one is Kind.MALFORMED else one for offset, one in made if one is not None]  # type: ignore[misc]


def found_in(made: Made) -> list[Record | int]:
    assert not isinstance(made, Refusal)
    found: list[Record | int] = []
    for one in made:
        if isinstance(one, Malformed):
            found.append(one.offset)
        else:
            assert isinstance(one, MadeBatch)
            pairs = zip(read_records(parse(memoryview(one.data))), one.offsets.tolist(), strict=True)
            found += [record._replace(offset=offset) for record, offset in pairs]
    return found


def spark(rows: Iterator[Any], refused: dict[int, str], known: Callable[[int], bool]) -> None:
    """What a task does with the slot's rows."""

    def through() -> Iterator[Any]:
        for batch in rows:
            if all(known(number) or number < 0 for number in batch.column(1).to_pylist()):
                yield as_spark_does(batch)
            else:
                made = as_spark_does(batch)
                kinds = [
                    Kind.UNKNOWN if kind in (Kind.RECORD, Kind.MALFORMED) else kind
                    for kind in made.column(0).to_pylist()
                ]
                yield _with_kinds(made, kinds)

    assert list(collect(refused, through())) == []


def _with_kinds(rows: Any, kinds: list[int]) -> Any:
    columns = [rows.column(at) for at in range(rows.num_columns)]
    columns[0] = pa.array([int(kind) for kind in kinds], pa.int32())
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


class Detour:
    """A slot's loop, and what evaluates for it."""

    def __init__(
        self,
        refused: dict[int, str] | None = None,
        known: Callable[[int], bool] = lambda _: True,
        spark: Callable[[Iterator[Any], dict[int, str], Callable[[int], bool]], None] = spark,
    ) -> None:
        self.loop = Loop()
        self.exchange = Exchange(frozenset({NUMBER}))
        self.evaluator = self.exchange.of(self.loop)
        rows = self.exchange.rows(lambda: False)
        self.task = threading.Thread(target=spark, args=(rows, refused or {}, known), daemon=True)
        self.task.start()

    def close(self) -> None:
        self.exchange.close()
        self.task.join(SECONDS)
        assert not self.task.is_alive()
        self.loop.close()

    def results(self, *works: Work) -> list[Made]:
        found: dict[int, Made] = {}  # a refusal may come first
        for number, one in enumerate(works):
            self.evaluator.submit(one, partial(found.__setitem__, number))
        for _ in range(int(SECONDS * 100)):
            if len(found) == len(works):
                return [found[number] for number in range(len(works))]
            self.loop.run_once(0.01)
        raise AssertionError(f"{len(works) - len(found)} of {len(works)} results did not come")


@pytest.fixture
def detour() -> Iterator[Detour]:
    with closing(Detour()) as one:
        yield one


@pytest.mark.parametrize("codec", range(5))
def test_each_piece_of_work_gets_its_own_result(detour: Detour, codec: int) -> None:
    works = [(0, 1), (5, 2_000), (9_000, 7), (10_000, 1), (20_000, 300)]
    made = detour.results(*(work(*one, codec=codec) for one in works))
    assert [found_in(one) for one in made] == [expected(*one) for one in works]
    assert found_in(detour.results(work(7, 50))[0]) == expected(7, 50)


def test_batches_are_no_larger_than_allowed(detour: Detour) -> None:
    (made,) = detour.results(work(0, 2_000, codec=0)._replace(most_bytes=1_500))
    assert found_in(made) == expected(0, 2_000)
    assert all(len(one.data) <= 1_500 for one in made if isinstance(one, MadeBatch))


def test_work_of_any_size_is_evaluated_with_little_memory_at_a_time(
    detour: Detour, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def opened(batch: Batch) -> Opened:
        found = columns.opened(batch)
        sizes.append(len(found.data))
        return found

    monkeypatch.setattr(merging, "opened", opened)
    monkeypatch.setattr(merging, "PLAIN_BYTES", 2_000)
    parts = [work(first, 50) for first in range(0, 4_000, 100)]
    whole = parts[0]._replace(
        batches=[batch for one in parts for batch in one.batches],
        stretches=[stretch for one in parts for stretch in one.stretches],
    )
    taken = merging.taken(whole)
    assert sum(sizes) < 2_000 + max(sizes)
    assert taken.later is not None
    assert len(taken.work.batches) > len(taken.later.batches) > 20
    assert found_in(detour.results(whole)[0]) == [it for first in range(0, 4_000, 100) for it in expected(first, 50)]
    broken = parts[-1].batches[0]
    broken.view[-1] ^= 1
    (made,) = detour.results(whole)
    assert isinstance(made, Refusal) and made.reason is Reason.CORRUPT_BATCH


def test_the_records_after_the_first_ones_keep_their_offsets() -> None:
    stretches = [Stretch(0, 120), Stretch(130, 80)]
    offsets = [*range(120), *range(130, 210)]
    for records in (0, 1, 119, 120, 121, 200):
        later = [
            offset
            for one in merging._behind(stretches, records)
            for offset in range(one.source, one.source + one.records)
        ]
        assert later == offsets[records:]


def test_damage_is_the_result_of_the_work_that_has_it_and_of_no_other(detour: Detour) -> None:
    damaged = work(100, 10)
    damaged.batches[0].view[-1] ^= 1
    before, middle, after = detour.results(work(0, 5), damaged, work(200, 5))
    assert isinstance(middle, Refusal) and middle.reason is Reason.CORRUPT_BATCH
    assert (found_in(before), found_in(after)) == (expected(0, 5), expected(200, 5))
    before, last = detour.results(work(0, 5), damaged)
    assert found_in(before) == expected(0, 5) and isinstance(last, Refusal)


def test_a_secret_that_is_not_there_is_named_without_its_content(detour: Detour) -> None:
    missing = TRANSFORM.model_copy(update={"secrets": {"salt": "${directory:/nowhere:salt}"}})
    (made,) = detour.results(work(0, 5, transform=missing))
    assert isinstance(made, Refusal) and made.reason is Reason.TRANSFORM_SECRET_MISSING
    assert made.detail.startswith("transform of topic ") and "/nowhere" in made.detail


def test_a_refused_expression_says_why_and_others_go_on() -> None:
    with closing(Detour({NUMBER: "where: Rand"}, lambda number: number != NUMBER)) as detour:
        (made,) = detour.results(work(0, 5))
        assert made == Refusal(Reason.TRANSFORM_REFUSED, "where: Rand")
        assert detour.exchange.serves(frozenset({NUMBER}))
        other = TRANSFORM.model_copy(update={"where": "another *"})
        assert found_in(detour.results(work(0, 5, transform=other))[0]) == expected(0, 5)


def test_a_query_of_another_plan_is_started_again() -> None:
    with closing(Detour(known=lambda _: False)) as detour:
        (made,) = detour.results(work(0, 5))
        assert isinstance(made, Refusal)
        assert not detour.exchange.serves(frozenset({NUMBER}))


def test_a_task_serves_exactly_the_transformations_that_it_was_started_for(detour: Detour) -> None:
    assert detour.exchange.serves(frozenset({NUMBER}))
    assert not detour.exchange.serves(frozenset()) and not detour.exchange.serves(frozenset({NUMBER, 1}))
    assert NOTHING.serves(frozenset()) and not NOTHING.serves(frozenset({1}))


def test_the_error_of_a_slot_is_raised_where_its_rows_are_taken() -> None:
    def fails(_: Evaluators, __: Callable[[], bool]) -> None:
        raise ValueError("the slot is over")

    with pytest.raises(ValueError, match="the slot is over"):
        list(copied_beside(frozenset({NUMBER}), fails, lambda: False))
    (address,) = copied_beside(frozenset({NUMBER}), lambda *_: None, lambda: False)
    assert address.num_rows == 1


def test_a_slot_whose_rows_are_not_taken_any_more_ends() -> None:
    ended = threading.Event()

    def copy(evaluators: Evaluators, is_over: Callable[[], bool]) -> None:
        with closing(Loop()) as loop:
            evaluators.of(loop).submit(work(0, 5), lambda _: None)
            while not is_over():
                loop.run_once(0.01)
        ended.set()

    rows = copied_beside(frozenset({NUMBER}), copy, lambda: False)
    assert next(rows).num_rows == 1  # the socket's address
    rows.close()  # type: ignore[attr-defined]
    assert ended.wait(SECONDS)


def test_the_slot_hears_why_the_second_process_has_ended() -> None:
    """Spark would notice it only when the slot has more rows, which it has not before a result."""
    with closing(Loop()) as loop:
        exchange = Exchange(frozenset({NUMBER}))
        exchange.of(loop).submit(work(0, 5), lambda _: None)
        rows = exchange.rows(lambda: False)

        def through() -> Iterator[Any]:
            yield as_spark_does(next(rows))
            raise ValueError("no memory")

        with pytest.raises(ValueError, match="no memory"):
            list(collect({}, through()))
        with pytest.raises(SetupError, match="ValueError: no memory"):
            list(rows)
        exchange.close()


def test_spark_forwards_as_many_rows_at_a_time_as_fillers_follow() -> None:
    assert own_properties("")["spark.sql.execution.arrow.maxRecordsPerBatch"] == str(HANDED_ON)
