"""The same application and launcher on a Spark Standalone cluster that has one core."""

import re

import pytest

from strait.config.links import Spark
from strait.launch.base import EXIT_NEEDS_MORE_CORES
from support.links.links import Link

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def test_it_copies_on_a_cluster_and_refuses_more_slots_than_that_has_cores(link: Link, standalone_master: str) -> None:
    link.spark = Spark(master=standalone_master, conf={"spark.scheduler.maxRegisteredResourcesWaitingTime": "2s"})
    link.produce(1000)
    link.publish(slots=2)
    link.submit(slots=2, ledger_seconds=3600)
    ended = link.until_ended(within_seconds=180)
    assert ended.exit_code == EXIT_NEEDS_MORE_CORES
    assert re.search("needs 2 cores, has [01]; resubmit", link.launcher.cause(ended))  # 0: its executor starts slowly

    link.spark = Spark(master=standalone_master)
    link.publish(slots=1)
    link.submit(slots=1, ledger_seconds=2)
    link.until(lambda: link.copied() == 1000, "everything is copied", within_seconds=180)
    link.until(
        lambda: sum(row["records"] for row in link.ledger()) == 1000, "the slot has the one core: the driver writes"
    )
    link.publish(slots=2)
    ended = link.until_ended(within_seconds=180)
    assert ended.exit_code == EXIT_NEEDS_MORE_CORES
    assert "needs 2 cores, has 1; resubmit" in link.launcher.cause(ended)
