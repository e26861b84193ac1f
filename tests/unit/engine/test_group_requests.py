"""What brokers may answer about many groups at once: in any order, and not about each."""

from typing import Any, ClassVar

import pytest
from kafka.protocol.consumer.group import OffsetCommitResponse, OffsetFetchResponse

from strait.errors import ClusterUnavailable
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.consumer_groups import Committed, ConsumerGroups
from strait.net.group_coordinators import Coordinators
from strait.net.handshake import Answer
from strait.net.share_groups import ShareGroups
from strait.wire import error_codes


class Answering:
    """Speaks the highest versions, and answers with what was prepared."""

    def __init__(self, *replies: Any) -> None:
        self._replies = list(replies)
        self.requests: list[Any] = []

    def version(self, _: int, __: int, highest: int) -> int:
        return highest

    def ask_each(self, requests: list[Any], _: object, __: int = 0) -> list[Any]:
        self.requests += requests
        return [self._replies.pop(0) for _ in requests]

    def ask(self, request: Any, kind: object, _: int = 0) -> Any:
        return self.ask_each([request], kind)[0]

    def ask_again(self, request: Any, kind: object, before: Answer | None, _: int = 0) -> Answer:
        reply = self.ask(request, kind)
        told = str(reply).encode()
        return before if before is not None and before.told == told else Answer(told, reply)


class OneBroker(Coordinators):
    """It coordinates all groups."""

    def __init__(self, broker: Answering) -> None:
        super().__init__({}, "it")
        self._broker: Any = broker

    def of(self, groups: Any) -> Any:
        return [(("it", 9092), list(groups), 0)]

    def at(self, _: Any) -> Any:
        return self._broker


class Coordinated(ConsumerGroups):
    """All groups by one broker."""

    def __init__(self, broker: Answering) -> None:
        super().__init__({}, "it")
        self.coordinators = OneBroker(broker)


def fetched(*groups: tuple[str, int, int]) -> OffsetFetchResponse:
    """(group, offset of its only partition, error code of that)."""
    group_class = OffsetFetchResponse.OffsetFetchResponseGroup
    topic_class = group_class.OffsetFetchResponseTopics
    return OffsetFetchResponse(
        groups=[
            group_class(
                group_id=name,
                error_code=0,
                topics=[
                    topic_class(
                        name="t",
                        partitions=[
                            topic_class.OffsetFetchResponsePartitions(
                                partition_index=0,
                                committed_offset=offset,
                                committed_leader_epoch=3,
                                metadata=None,
                                error_code=code,
                            )
                        ],
                    )
                ],
            )
            for name, offset, code in groups
        ]
    )


def taken(codes: dict[int, int]) -> OffsetCommitResponse:
    topic_class = OffsetCommitResponse.OffsetCommitResponseTopic
    partitions = [
        topic_class.OffsetCommitResponsePartition(partition_index=number, error_code=code)
        for number, code in codes.items()
    ]
    return OffsetCommitResponse(topics=[topic_class(name="t", partitions=partitions)])


def test_offsets_are_those_of_the_group_that_the_reply_names() -> None:
    """Brokers 3.0 to 3.3 answer in the order of a hash map."""
    broker = Answering(fetched(("c", 30, 0), ("a", 10, 0), ("unstable", 5, 88)))
    found = Coordinated(broker).committed(["a", "b", "c", "unstable"])
    place = TopicPartition("t", 0)
    assert found == {
        "a": {place: Committed(10, "", 3)},
        "b": error_policy.NOT_ANSWERED,
        "c": {place: Committed(30, "", 3)},
        "unstable": 88,
    }


def test_a_partition_that_the_reply_does_not_mention_was_not_written() -> None:
    broker = Answering(taken({0: 0, 2: error_codes.UNKNOWN_MEMBER_ID}))
    wanted = {"g": {TopicPartition("t", number): Committed(7, "") for number in range(3)}}
    codes = Coordinated(broker).commit(wanted, 1_000)["g"]
    assert [codes[TopicPartition("t", number)] for number in range(3)] == [
        0, error_policy.NOT_ANSWERED, error_codes.UNKNOWN_MEMBER_ID
    ]  # fmt: skip


def test_a_group_of_many_partitions_is_committed_in_parts() -> None:
    """A broker writes one commit as one batch, of at most a megabyte."""
    broker = Answering(*(taken(dict.fromkeys(range(at, min(at + 1000, 2500)), 0)) for at in range(0, 2_500, 1_000)))
    wanted = {"g": {TopicPartition("t", number): Committed(number, "") for number in range(2_500)}}
    codes = Coordinated(broker).commit(wanted, 1_000)["g"]
    assert len(codes) == 2_500
    assert set(codes.values()) == {0}
    assert [len(request.topics[0].partitions) for request in broker.requests] == [1_000, 1_000, 500]


def test_other_groups_do_not_fail_with_the_topic_of_share_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator then does not answer in time, though it answers for others."""
    monkeypatch.setattr("strait.net.share_groups._PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("strait.net.group_coordinators._COMMIT_SECONDS", 0.0)

    class Silent(Answering):
        versions: ClassVar = {90: (0, 1), 91: (0, 0)}

        def ask_each(self, *_: Any) -> list[Any]:
            raise ClusterUnavailable("it", "timed out")

        ask_each_again = ask_each

    shares, place = ShareGroups(OneBroker(Silent())), TopicPartition("t", 0)
    assert shares.starts(["g"]) == {"g": error_codes.REQUEST_TIMED_OUT}
    assert shares.alter({"g": {place: Committed(1, "")}}) == {"g": {place: error_codes.REQUEST_TIMED_OUT}}
