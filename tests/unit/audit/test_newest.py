"""The result of a topic after many audits."""

from functools import reduce

from strait.audit.publishing import with_results
from strait.exporter.metrics import LINKS
from strait.exporter.observation import Observation
from support.model.audits import audit_of


def after(*audits):
    return reduce(with_results, audits, {})


def test_a_sample_that_finds_nothing_takes_back_neither_a_verification_nor_a_difference():
    found = after(audit_of(1000, "equal", 1000), audit_of(2000, "equal", None))
    assert found["t"].verified_until_ms == 1000
    found = after(audit_of(1000, "different", None, differences=3), audit_of(2000, "equal", None))
    assert (found["t"].verified_until_ms, found["t"].differences) == (None, 3)


def test_a_difference_takes_back_a_verification_and_an_audit_of_all_records_a_difference():
    found = after(audit_of(1000, "equal", 1000), audit_of(2000, "different", None, differences=3))
    assert (found["t"].verified_until_ms, found["t"].differences) == (None, 3)
    found = with_results(found, audit_of(3000, "explained", 3000))
    assert (found["t"].verified_until_ms, found["t"].differences) == (3000, 0)


def test_the_metrics_have_a_sample_for_what_is_known():
    audited = after(audit_of(1000, "equal", 1000), audit_of(2000, "incomplete", None, topic="u"))
    seen = Observation("l", "a", "b", 0.0, audited=audited)
    values = {one.name: list(one.values(seen)) for one in LINKS if one.name.startswith("strait_audit_")}
    assert values == {
        "strait_audit_verified_until_timestamp_seconds": [(("t",), 1.0)],
        "strait_audit_differences": [(("t",), 0), (("u",), 0)],
    }
