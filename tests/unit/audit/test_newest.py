"""What is verified of a topic after many audits."""

import pytest

from strait.exporter.metrics import LINKS
from strait.exporter.observation import Observation
from strait.state.codec import encode
from strait.state.schema import PlannedTopic
from strait.state.verified import Verified, verified
from support.model.audits import result_of


def planned(*topics, ids=("", "")):
    return [
        PlannedTopic(source=name, destination=f"copy.{name}", source_id=ids[0], destination_id=ids[1], slots=())
        for name in topics
    ]


def after(*results, topics=("t",), ids=("", "")):
    """As the compacted topic holds them: of each key the newest."""
    by_key = {encode(one)[0]: one for one in results}
    return verified(planned(*topics, ids=ids), {(one.topic, one.kind): one for one in by_key.values()})


def test_a_sample_that_finds_nothing_takes_back_neither_a_verification_nor_a_difference():
    found = after(result_of(1000, "equal", 1000), result_of(2000, "incomplete", None))
    assert found["t"] == Verified("incomplete", 0, 1000)
    found = after(result_of(1000, "different", None, differences=3), result_of(2000, "equal", None))
    assert found["t"] == Verified("equal", 3, None)
    assert found["t"].differs


def test_a_difference_takes_back_a_verification_and_an_audit_of_all_records_a_difference():
    first = [result_of(1000, "equal", 1000), result_of(2000, "different", None, differences=3)]
    assert after(*first)["t"] == Verified("different", 3, None)
    assert after(*first, result_of(3000, "explained", 3000))["t"] == Verified("explained", 0, 3000)


@pytest.mark.parametrize("ids", [("s2", "d1"), ("s1", "d2")])
def test_a_recreated_topic_has_no_verification_of_the_former_one(ids):
    results = [result_of(1000, "equal", 1000, ids=("s1", "d1")), result_of(2000, "equal", None, ids=("s1", "d1"))]
    assert after(*results, ids=("s1", "d1"))["t"].until_ms == 1000
    assert after(*results, ids=ids) == {}
    assert after(*results, result_of(3000, "equal", None, ids=ids), ids=ids)["t"] == Verified("equal", 0, None)


def test_topics_that_the_link_does_not_replicate_are_left_out():
    assert after(result_of(1000, "equal", 1000, topic="u")) == {}


def test_each_topic_has_few_records_however_often_it_is_audited():
    results = [result_of(at, "equal", at if at % 10 == 0 else None) for at in range(1000)]
    assert len({encode(one)[0] for one in results}) == 2


def test_the_metrics_have_a_sample_for_what_is_known():
    audited = after(result_of(1000, "equal", 1000), result_of(2000, "incomplete", None, topic="u"), topics=("t", "u"))
    seen = Observation("l", "a", "b", 0.0, audited=audited)
    values = {one.name: list(one.values(seen)) for one in LINKS if one.name.startswith("strait_audit_")}
    assert values == {
        "strait_audit_verified_until_timestamp_seconds": [(("t",), 1.0)],
        "strait_audit_differences": [(("t",), 0), (("u",), 0)],
    }
