"""Which partitions wait in a session of their own, so that those that are written to have a small one."""

from collections import defaultdict

import pytest

from strait.engine.broker_fetcher import QUIET_AT_LEAST, BrokerFetcher
from strait.engine.fetch_set import QUIET_SECONDS
from strait.engine.fetcher import QUIET_LINE
from strait.engine.partition.partition import Partition
from strait.net.event_loop import Loop
from strait.reasons import Reason
from support.model.fetching import Source, caught_up, fetcher

BUSY_LINE = 0


class Lines:
    """A broker with a channel for each line."""

    def __init__(self, partitions: list[Partition]) -> None:
        self.loop = Loop()
        self.sources: dict[int, Source] = defaultdict(Source)
        self.fetcher = BrokerFetcher(lambda line: fetcher(self.sources[line], (), loop=self.loop, line=line))
        self._session: dict[int, set[int]] = defaultdict(set)
        for partition in partitions:
            self.fetcher.add(partition)
        self.fetcher.fit(1)

    def turn(self, *, silent: int | None = None) -> None:
        """Ask, and get answers without news, but for those of the line that is ``silent``."""
        self.fetcher.ask()
        for line, source in self.sources.items():
            while line != silent and source.open:
                request = source.asked[-1]
                if request.session_epoch == 0:
                    self._session[line].clear()
                self._session[line] |= {item.partition for topic in request.topics for item in topic.partitions}
                self._session[line] -= {
                    number for topic in request.forgotten_topics_data for number in topic.partitions
                }
                source.answer_without_news()

    def asked(self, line: int) -> set[int]:
        """The partitions that the broker looks at for a line."""
        return self._session[line]

    def pass_time(self) -> None:
        self.loop.now += QUIET_SECONDS + 0.1
        for _ in range(3):  # found quiet, dialled, moved
            self.turn()


@pytest.fixture
def partitions() -> list[Partition]:
    return caught_up(QUIET_AT_LEAST + 10)


def test_what_is_quiet_moves_to_a_session_of_its_own_and_comes_back_with_any_change(
    partitions: list[Partition],
) -> None:
    lines, every = Lines(partitions), set(range(len(partitions)))
    lines.turn()
    assert (lines.asked(BUSY_LINE), lines.asked(QUIET_LINE)) == (every, set())
    partitions[3].block(Reason.SOURCE_UNREACHABLE, "", lines.loop.now + 1e6)
    lines.pass_time()
    assert lines.asked(QUIET_LINE) == every - {3}
    partitions[5].cursor.stamped(1, 1, 1, 0)  # a record came
    partitions[6].cursor.led_at(9)
    partitions[7].reset_position(None, "", 0.0)
    lines.turn()
    lines.turn()
    assert lines.asked(BUSY_LINE) == {5, 6}
    assert lines.asked(QUIET_LINE) == every - {3, 5, 6, 7}


def test_what_changes_while_the_busy_line_waits_is_fetched_over_the_quiet_one_until_it_can_move(
    partitions: list[Partition],
) -> None:
    lines = Lines(partitions)
    lines.turn()
    lines.pass_time()
    partitions[3].cursor.stamped(1, 1, 1, 0)
    for _ in range(2):
        lines.turn(silent=BUSY_LINE)
    assert lines.sources[BUSY_LINE].open
    partitions[5].cursor.stamped(1, 1, 1, 0)
    for _ in range(3):
        lines.turn(silent=BUSY_LINE)
        assert 5 in lines.asked(QUIET_LINE)
    for _ in range(2):
        lines.turn()
    assert lines.asked(BUSY_LINE) == {3, 5}
    assert not lines.asked(QUIET_LINE) & {3, 5}


def test_few_quiet_partitions_are_not_worth_a_session() -> None:
    lines = Lines(caught_up(QUIET_AT_LEAST - 1))
    lines.turn()
    lines.pass_time()
    assert len(lines.asked(BUSY_LINE)) == QUIET_AT_LEAST - 1
    assert QUIET_LINE not in lines.sources


def test_what_is_taken_away_is_on_neither_line(partitions: list[Partition]) -> None:
    lines = Lines(partitions)
    lines.turn()
    lines.pass_time()
    lines.fetcher.remove(partitions[4])
    partitions[5].cursor.stamped(1, 1, 1, 0)
    lines.turn()
    lines.fetcher.remove(partitions[5])
    lines.turn()
    lines.turn()
    partitions[6].cursor.stamped(1, 1, 1, 0)
    lines.turn()
    lines.turn()
    assert (lines.asked(BUSY_LINE), lines.asked(QUIET_LINE) & {4, 5, 6}) == ({6}, set())
    for partition in partitions:
        lines.fetcher.remove(partition)
    assert not lines.fetcher.used


def test_partitions_that_go_and_come_leave_nothing_behind(partitions: list[Partition]) -> None:
    lines = Lines(partitions)
    lines.turn()
    for number in range(1, 20):
        lines.pass_time()
        assert len(lines.asked(QUIET_LINE)) == len(partitions)
        for partition in partitions:
            partition.cursor.stamped(1, number, number, 0)
            partition.cursor.heard(number, number, 0)
            partition.position.copied_to = partition.position.acked_sequence = number
        for _ in range(3):
            lines.turn()
        assert len(lines.asked(BUSY_LINE)) == len(partitions)
    fetchers = lines.fetcher._busy, lines.fetcher._quiet
    assert sum(len(one._set._quiet_checks) for one in fetchers if one) <= 2 * len(partitions)
