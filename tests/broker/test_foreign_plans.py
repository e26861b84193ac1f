"""Plans that no control plane of the link has published: what they cannot do, and that they are told of."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config import naming
from strait.config.client_properties import FORMER_STATE_KEY, STATE_KEY
from strait.config.links import LinksFile, parse
from strait.control.pausing import pause, resume
from strait.control.plane import Control
from strait.errors import StateError
from strait.kafka.admin import Admin
from strait.planning.plan.pauses import Scope
from strait.reasons import Reason
from strait.state.admission import with_selection_of
from strait.state.codec import encode
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import OffsetMapping, Plan, PlannedSettings, PlannedTopic
from strait.state.signing import HEADER, Keys, Proof
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied
from support.kafka.topics import create, produce
from support.links.copying import copying

pytestmark = pytest.mark.broker

KEY, OTHER_KEY = "k" * 32, "o" * 32


@dataclass
class Attacked:
    """A link that copies `orders`, on a source that also has `salaries`."""

    clusters: Any
    name: str

    @property
    def orders(self) -> str:
        return f"{self.name}-orders"

    @property
    def salaries(self) -> str:
        return f"{self.name}-salaries"

    @property
    def loot(self) -> str:
        return f"{self.name}-loot"

    def file(self, *topics: str, **keys: str) -> LinksFile:
        named = {"key": STATE_KEY, "former": FORMER_STATE_KEY}
        there = self.clusters.destination.client_properties | {named[name]: key for name, key in keys.items()}
        link = {"source": "a", "destination": "b", "topics": {"include": list(topics)}}
        clusters = {"a": self.clusters.source.client_properties, "b": there}
        return parse({"clusters": clusters, "links": {self.name: link}}, where="links file")

    def control(self, *topics: str, **keys: str) -> Control:
        return Control(self.file(*(topics or (self.orders,)), **keys), self.name)

    def asking(self, *topics: str, **keys: str) -> Control:
        """A control plane that asks before it changes what is copied."""
        file = self.file(*topics, **keys)
        link = file.links[self.name].model_copy(update={"approval": "required"})
        return Control(file.model_copy(update={"links": {self.name: link}}), self.name)

    def approved(self, control: Control) -> list[str]:
        """Do all that the control plane asks for; return the source topics that are copied then."""
        plan = control.apply(shown=control.show(control.propose())).plan
        assert control.propose().empty
        return [topic.source for topic in plan.topics]

    def plan(self) -> Plan:
        with StateReader(self.clusters.destination.client_properties, "b", self.name) as state:
            state.catch_up()
            return state.plans["default"]

    def steal(self, headers: Any = None) -> Plan:
        """The two records that have a topic copied which the link does not select."""
        create(self.clusters.destination, self.loot, 1)
        source = Admin(self.clusters.source.client_properties, "a").observe(self.salaries.__eq__).topics[self.salaries]
        there = Admin(self.clusters.destination.client_properties, "b").observe(self.loot.__eq__).topics[self.loot]
        ids = {"source_id": source.topic_id, "destination_id": there.topic_id}
        before = self.plan()
        stolen = PlannedTopic(source=self.salaries, destination=self.loot, slots=(0,), **ids)
        forged = before.model_copy(
            update={"version": before.version + 1, "topics": (*before.topics, stolen), "published_at_ms": _now_ms()}
        )
        run = OffsetMapping(
            topic=self.salaries,
            partition=0,
            destination=self.loot,
            source_base=0,
            destination_base=0,
            sequence_base=0,
            sequence_end=0,
            checkpoint_at_ms=0,
            **ids,
        )
        self.write(naming.map_topic(self.name), run)
        self.write(naming.plan_topic(self.name), forged, headers)
        return forged

    def write(self, topic: str, value: Any, headers: Any = None) -> None:
        producer = Producer(self.clusters.destination.client_properties)
        key, raw = encode(value)
        producer.produce(topic, key=key, value=raw, partition=0, headers=headers and headers(topic, key, raw))
        assert producer.flush(30) == 0

    def waits(self, topic: str, reason: str | None) -> Callable[[], bool]:
        reader = StateReader(self.clusters.destination.client_properties, "b", self.name, follow=("reports",))

        def look() -> bool:
            reader.catch_up()
            rows = [row for parts in reader.reports.values() for report in parts for row in report.partitions]
            return [row.reason for row in rows if row.topic == topic] == [reason]

        return look

    def until_copied(self, topic: str) -> None:
        wanted = sum(ends(self.clusters.source, topic, 1))
        eventually(lambda: sum(ends(self.clusters.destination, topic, 1)) >= wanted, what=f"all of {topic} copied")
        assert_copied(self.clusters.source, self.clusters.destination, topic, 1)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def attacked(clusters: Any, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attacked]:
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    found = Attacked(clusters, f"f{topic_name[-8:]}")
    for topic in (found.orders, found.salaries):
        create(clusters.source, topic, 1)
        produce(clusters.source, topic, 100)
    return found


@pytest.mark.parametrize("headers", [None, Keys([OTHER_KEY]).signature, lambda *_: [(HEADER, b"1:")]])
def test_a_forged_plan_copies_nothing_that_the_link_does_not_select_and_is_told_of(
    attacked: Attacked, tmp_path: Path, headers: Any
) -> None:
    with attacked.control() as control, copying(control, tmp_path):
        attacked.until_copied(attacked.orders)
        forged = attacked.steal(headers)
        eventually(attacked.waits(attacked.salaries, Reason.OUTSIDE_SELECTION), what="the reason is reported")
        produce(attacked.clusters.source, attacked.orders, 50)
        attacked.until_copied(attacked.orders)
        assert ends(attacked.clusters.destination, attacked.loot, 1) == [0]

        proposal = control.propose()
        assert [risk.code for risk in proposal.state_risks] == ["foreign_plan"]
        assert f"foreign_plan: plan {forged.version} of task group default is " in control.show(proposal).text
        outcome = control.apply(proposal)
        assert "foreign_plan" in outcome.as_text(), "it is in the log of the run, too"
        told = attacked.plan().replaced
        assert told is not None and (told.version, told.published_at_ms) == (forged.version, forged.published_at_ms)
        assert [topic.source for topic in outcome.plan.topics] == [attacked.orders]
        assert control.propose().empty, "once"
        assert attacked.plan().replaced == told


def test_an_edit_is_followed_without_a_restart(attacked: Attacked, tmp_path: Path) -> None:
    """By its signature: the spec does not select the topic."""
    with attacked.control() as control, copying(control, tmp_path):
        attacked.until_copied(attacked.orders)
        with attacked.control(attacked.orders, attacked.salaries) as edited:
            edited.apply()
        attacked.until_copied(attacked.salaries)
    assert (tmp_path / "home" / STATE_KEY).stat().st_mode & 0o777 == 0o600


def test_an_edit_of_a_host_with_another_key_needs_a_restart(attacked: Attacked, tmp_path: Path) -> None:
    with attacked.control(key=KEY) as control, copying(control, tmp_path):
        running = control.spec(attacked.plan(), ledger_dir=tmp_path, checkpoint_dir=tmp_path)
        attacked.until_copied(attacked.orders)
        with attacked.control(attacked.orders, attacked.salaries, key=OTHER_KEY) as edited:
            plan = edited.apply().plan
            wanted = edited.spec(plan, ledger_dir=tmp_path, checkpoint_dir=tmp_path)
        eventually(attacked.waits(attacked.salaries, Reason.OUTSIDE_SELECTION), what="the reason is reported")
        assert with_selection_of(wanted, running, plan, {"default": Proof.PROVEN}) == wanted, (
            "it is restarted with this"
        )
    with attacked.control(attacked.orders, attacked.salaries, key=OTHER_KEY) as edited, copying(edited, tmp_path):
        attacked.until_copied(attacked.salaries)


def test_keys_are_rotated_without_an_interruption(attacked: Attacked, tmp_path: Path) -> None:
    """First the new one is accepted everywhere, then it signs, then the old one goes."""
    both = [attacked.orders, attacked.salaries]
    with attacked.control(key=KEY, former=OTHER_KEY) as control, copying(control, tmp_path):
        attacked.until_copied(attacked.orders)
        with attacked.control(*both, key=OTHER_KEY, former=KEY) as edited:
            edited.apply()
        attacked.until_copied(attacked.salaries)
        with attacked.control(*both, key=OTHER_KEY) as later:
            assert later.propose().empty and not later.propose().state_risks


def test_a_plan_of_an_older_version_is_signed_and_nothing_else_changes(attacked: Attacked, tmp_path: Path) -> None:
    with attacked.control() as control, copying(control, tmp_path):
        before = control.apply().plan
        attacked.write(naming.plan_topic(attacked.name), before)
        proposal = control.propose()
        assert not proposal.state_risks and proposal.drafts
        after = control.apply(proposal).plan
        assert after.version == before.version + 1 and after.topics == before.topics and after.replaced is None
        assert control.propose().empty
        attacked.until_copied(attacked.orders)


def test_topics_in_a_forged_plan_are_not_adopted(attacked: Attacked, tmp_path: Path) -> None:
    """`strait apply` and `strait run` plan with the topics of an Airflow Variable, which they take from the plan."""
    with attacked.control() as control:
        before = control.apply().plan
    settings = PlannedSettings(
        digest="x", topics_digest="x", origins={"topics": "Variable"}, topics=f'{{"include":["{attacked.salaries}"]}}'
    )
    forged = before.model_copy(update={"version": before.version + 1, "settings": settings})
    attacked.write(naming.plan_topic(attacked.name), forged)
    with attacked.control() as control:
        with pytest.raises(StateError, match=r"not signed.*--from-file"):
            control.settings_in_force(adopt=True)
        assert control.settings_in_force().elsewhere == "Variable"
        assert [topic.source for topic in control.apply().plan.topics] == [attacked.orders]
        assert control.settings_in_force(adopt=True).elsewhere == ""


def test_an_edit_gives_a_forged_plan_no_signature(attacked: Attacked, tmp_path: Path) -> None:
    """`strait pause` edits the plan in force, whatever that is."""
    with attacked.control() as control, copying(control, tmp_path):
        attacked.until_copied(attacked.orders)
        attacked.steal()
        pause(
            ConfiguredLink.of(attacked.file(attacked.orders), attacked.name),
            Scope(attacked.orders),
            by="me",
            reason="a test",
        )
        eventually(attacked.waits(attacked.salaries, Reason.OUTSIDE_SELECTION), what="the reason is reported")
        assert [topic.source for topic in control.apply().plan.topics] == [attacked.orders]
        resume(ConfiguredLink.of(attacked.file(attacked.orders), attacked.name), Scope(attacked.orders))
        produce(attacked.clusters.source, attacked.orders, 50)
        attacked.until_copied(attacked.orders)
        assert ends(attacked.clusters.destination, attacked.loot, 1) == [0]


def test_a_forged_topic_that_waits_to_leave_the_plan_is_not_copied(attacked: Attacked, tmp_path: Path) -> None:
    """Whether it is the link's own, deselected by an edit, is not known: an operator decides."""
    with attacked.control() as control, copying(control, tmp_path):
        attacked.until_copied(attacked.orders)
        forged = attacked.steal()
        with attacked.asking(attacked.orders) as asking:
            outcome = asking.apply()
            assert [str(effect).split() for effect in outcome.pending] == [["leaves", attacked.salaries]]
            told = outcome.plan.replaced
            assert told is not None and told.version == forged.version
            part = asking.propose().permitted
            assert part is not None and part.empty and not part.state_risks, "once"
            eventually(attacked.waits(attacked.salaries, Reason.OUTSIDE_SELECTION), what="the reason is reported")
            of_link = ConfiguredLink.of(attacked.file(attacked.orders), attacked.name)
            pause(of_link, Scope(attacked.orders), by="me", reason="a test")
            resume(of_link, Scope(attacked.orders))
            produce(attacked.clusters.source, attacked.orders, 50)
            attacked.until_copied(attacked.orders)
            assert ends(attacked.clusters.destination, attacked.loot, 1) == [0]
            assert attacked.approved(asking) == [attacked.orders]


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_a_topic_that_an_edit_deselects_is_copied_until_that_is_approved(
    attacked: Attacked, tmp_path: Path, key: str
) -> None:
    """With the application's key, and on a host that has another one."""
    both = [attacked.orders, attacked.salaries]
    with attacked.control(*both, key=KEY) as control, copying(control, tmp_path):
        attacked.until_copied(attacked.salaries)
        with attacked.asking(attacked.orders, key=key) as asking:
            shown = asking.show(asking.propose())
            assert f"leaves {attacked.salaries}" in " ".join(shown.text.split())
            assert [str(effect).split() for effect in asking.apply().pending] == [["leaves", attacked.salaries]]
            for topic in both:
                produce(attacked.clusters.source, topic, 50)
                attacked.until_copied(topic)
            assert attacked.approved(asking) == [attacked.orders]
