import itertools
from collections import Counter

import pytest

from strait.demo.folder import MOST_INVOICE_BYTES
from strait.demo.records import SHOP, WAREHOUSE, records, scanned_invoice


def test_the_same_seed_gives_the_same_records():
    assert list(itertools.islice(records(SHOP, 5), 500)) == list(itertools.islice(records(SHOP, 5), 500))


def test_every_topic_gets_about_its_share():
    assert sum(shop.share for shop in SHOP.values()) == pytest.approx(1)
    counts = Counter(record.topic for record in itertools.islice(records(SHOP, 1), 20_000))
    for topic, shop in SHOP.items():
        assert counts[topic] / 20_000 == pytest.approx(shop.share, abs=0.02)


def test_the_records_hold_what_a_copy_may_get_wrong():
    made = list(itertools.islice(records(SHOP, 1), 20_000))
    assert all(record.key and record.headers for record in made)
    assert any(record.value is None for record in made)  # tombstones
    assert any(value is None for record in made for _, value in record.headers)


def test_only_the_scanned_invoice_is_larger_than_the_destination_takes():
    sizes = [len(record.value or b"") for record in itertools.islice(records(SHOP, 1), 20_000)]
    assert max(sizes) < MOST_INVOICE_BYTES < len(scanned_invoice(1, 2 * MOST_INVOICE_BYTES).value or b"")


def test_the_warehouse_writes_its_topics_alone():
    assert {record.topic for record in itertools.islice(records(WAREHOUSE, 1), 100)} == {"shipments"}
