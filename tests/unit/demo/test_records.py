import itertools
from collections import Counter

import pytest

from strait.demo.records import SHOP, shop_records


def test_the_same_seed_gives_the_same_records():
    assert list(itertools.islice(shop_records(5), 500)) == list(itertools.islice(shop_records(5), 500))


def test_every_topic_gets_about_its_share():
    counts = Counter(record.topic for record in itertools.islice(shop_records(1), 20_000))
    for topic, shop in SHOP.items():
        assert counts[topic] / 20_000 == pytest.approx(shop.share, abs=0.02)


def test_the_records_hold_what_a_copy_may_get_wrong():
    records = list(itertools.islice(shop_records(1), 20_000))
    assert all(record.key and record.headers for record in records)
    assert any(record.value is None for record in records)  # tombstones
    assert any(value is None for record in records for _, value in record.headers)
