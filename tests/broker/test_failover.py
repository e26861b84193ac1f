"""A link's clients move to its destination: none of their records twice, none missed, whatever is cut off between."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from strait.audit.publishing import publish
from strait.consumer_groups.sync import GroupSync
from strait.control import pausing
from strait.control.failover import failover as failovers
from strait.control.failover.journal import Journal
from strait.control.failover.observation import Observation
from strait.control.failover.planned import PlannedFailover
from strait.control.failover.turn import Settings, Turn
from strait.control.link_status import link_groups
from strait.control.pausing import set_stopped
from strait.control.plane import Control
from strait.control.tail import TailReader
from strait.embedded.kafka import Cluster
from strait.embedded.ports import free_ports
from strait.errors import FailoverStopped, FailoverTakenOver
from strait.kafka.admin import Admin, ConfigChange, NewTopic
from strait.model import TopicAcl, TopicPartition
from strait.net.consumer_groups import Committed, ConsumerGroups
from strait.planning.failover_report import left_behind, next_steps, screen
from strait.planning.plan.pauses import Scope
from strait.planning.waves import Wave
from strait.state.failover_records import Failover, FailoverStep
from strait.state.link_handle import ConfiguredLink
from strait.text import plural
from strait.wire import error_codes
from support.fixtures.waiting import eventually
from support.kafka.groups import Reader, commit, committed
from support.kafka.log_ends import ends
from support.kafka.records import read_all
from support.kafka.transactions import Transactions
from support.links.auditing import planned_between
from support.links.handles import handle_into
from support.links.mesh import Mesh
from support.proxy import switch
from support.proxy.gateway import GatedCluster, Gateway
from support.security.secured import Secured

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def clusters(own_clusters: Any) -> Any:
    """A link whose plans cannot be read may write to any topic of its cluster, and other tests leave such links."""
    return own_clusters


MakeLink = Callable[..., Mesh]
QUICK = Settings(by="a test", reason="to see", quiet_seconds=1.0, timeout_seconds=60.0)
LINK = ("a", "b")


@pytest.fixture
def make_link(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[MakeLink]:
    """One link from a to b, with its slot at work."""
    made: list[Mesh] = []

    def make(second: str = "", **settings: Any) -> Mesh:
        both = {"a": clusters.source, "b": clusters.destination}
        link = Mesh(
            **{"clusters": both, "links": [LINK], "topic": topic_name, "folder": tmp_path, "rule": {}} | settings
        )
        made.append(link)
        link.make_topics()
        if second:
            Admin(clusters.source.client_properties, "a").create([NewTopic(second, 2, 1)])
        link.start(LINK)
        return link

    yield make
    for link in made:
        link.stop()


@contextmanager
def at_work(until: threading.Event, *works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Each in a thread of its own, until the event is set, at the latest when the block is over."""
    threads = [threading.Thread(target=work, args=(until,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        until.set()
        for thread in threads:
            thread.join(60)


class Writer:
    """Writes numbered records to a until it is told to stop."""

    def __init__(self, link: Mesh, topic: str = "", partitions: int = 0) -> None:
        self._topic = topic or link.topic
        self._partitions = partitions or link.partitions
        self._producer = Producer(link.clusters["a"].client_properties | {"linger.ms": 5, "enable.idempotence": True})
        self.keys: list[bytes] = []

    def write(self, records: int) -> None:
        for _ in range(records):
            number = len(self.keys)
            self.keys.append(b"%d" % number)
            self._producer.produce(self._topic, b"value", self.keys[-1], number % self._partitions)
        assert self._producer.flush(60) == 0

    def work(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            self.write(20)
            time.sleep(0.05)


def delete_before(cluster: Cluster, place: TopicPartition, offset: int) -> None:
    admin = AdminClient(cluster.client_properties)
    for future in admin.delete_records([KafkaPartition(*place, offset)]).values():
        future.result()


def until_ready(mesh: Mesh, link: tuple[str, str] = LINK) -> None:
    mesh.until_ready(link)


def run(link: Mesh, settings: Settings = QUICK, kind: Any = "planned", tell: Any = lambda _: None) -> Failover:
    return failovers.run(link.handle(LINK), kind, settings, tell)


def stopped(link: Mesh) -> bool:
    return link_groups(link.handle(LINK)).stopped


def verdicts(record: Failover) -> dict[str, str]:
    return {step.name: step.verdict for step in record.steps}


@pytest.mark.core
def test_consumers_go_on_where_they_were_while_everybody_is_at_work(make_link: MakeLink, topic_name: str) -> None:
    """Producers and consumers of both protocols work until the failover asks for their end."""
    link = make_link()
    until_ready(link)
    writer = Writer(link)
    written, read = threading.Event(), threading.Event()
    groups = {f"{topic_name}-{protocol}": protocol for protocol in ("classic", "consumer")}
    before = {group: Reader(link.clusters["a"], group, topic_name, how) for group, how in groups.items()}
    told: list[str] = []

    def tell(step: FailoverStep) -> None:
        told.append(f"{step.verdict} {step.name}: {step.detail}")
        if step.verdict == "waiting" and step.name == "producers":
            written.set()
        if step.verdict == "waiting" and step.name == "consumers":
            assert all(group in step.detail and "127.0.0.1" in step.detail for group in groups)
            read.set()

    with at_work(written, writer.work), at_work(read, *(reader.work for reader in before.values())):
        eventually(lambda: all(len(reader.keys) > 100 for reader in before.values()), what="consumers are at work")
        record = run(link, tell=tell)
    assert record.outcome == "done", told
    assert any("waiting producers" in line and "producer id" in line for line in told)
    assert (record.rpo_records, record.rpo_seconds, record.missing) == (0, 0.0, ())
    assert (record.groups, record.groups_exact) == (2, 2)
    assert {group.group: group.continues for group in record.group_list} == dict.fromkeys(groups, "exactly")
    assert [(item.topic, item.partitions, item.missing) for item in record.topics] == [(topic_name, 2, 0)]
    assert record.rto_seconds and record.rto_seconds > 1.0
    assert stopped(link)
    fresh = Producer(link.clusters["b"].client_properties)
    for number in range(30):
        fresh.produce(topic_name, b"value", b"new %d" % number, number % link.partitions)
    assert fresh.flush(30) == 0
    every = sorted([*writer.keys, *(b"new %d" % number for number in range(30))])
    for group, protocol in groups.items():
        after = Reader(link.clusters["b"], group, topic_name, protocol)
        rest = after.read(len(every) - len(before[group].keys))
        after.leave()
        assert sorted(before[group].keys + rest) == every
    again = run(link)  # it is over, so it looks again and says when it was
    assert (again.outcome, again.missing, verdicts(again)["earlier"]) == ("done", (), "warning")
    assert record.id in again.steps[0].detail
    assert [item.id for item in failovers.history(link.handle(LINK))] == [record.id, again.id]


class Killed(BaseException):
    """As SIGKILL: nothing is taken back."""


@pytest.mark.parametrize("part", [False, True], ids=["the link", "a wave"])
def test_a_process_killed_after_any_step_is_continued_by_the_next(
    make_link: MakeLink, monkeypatch: pytest.MonkeyPatch, *, part: bool
) -> None:
    link = make_link()
    settings = replace(QUICK, wave=Wave((link.topic,))) if part else QUICK
    until_ready(link)
    Writer(link).write(100)
    real = Turn._put
    seen: set[str] = set()

    def put(self: Turn, step: FailoverStep) -> None:
        real(self, step)
        mark = f"{step.name} {step.verdict}"
        if mark not in seen:
            seen.add(mark)
            raise Killed

    monkeypatch.setattr(Turn, "_put", put)
    monkeypatch.setattr(PlannedFailover, "_take_back", lambda _: None)
    ids = set()
    for _ in range(30):
        try:
            record = run(link, settings)
        except Killed:
            ids |= {item.id for item in failovers.history(link.handle(LINK))}
        else:
            break
    assert record.outcome == "done"
    assert ids == {record.id}
    assert {"copying done", "producers done", "drain done", "groups done", "quiet done", "stop waiting"} <= seen
    assert {"stop done", "verify done"} <= seen
    assert list(verdicts(record).items())[-4:] == [
        ("stop", "done"),
        ("verify", "done"),
        ("audited", "warning"),
        ("reverse", "warning"),
    ]
    assert read_all(link.clusters["a"], link.topic, 2) == read_all(link.clusters["b"], link.topic, 2)


def test_what_was_done_is_taken_back_where_producers_go_on(secured: Secured, topic_name: str, tmp_path: Path) -> None:
    """A superuser is not kept out by a fence; everybody else is, until it is lifted."""
    clusters = {"a": secured.source, "b": secured.destination}
    link = Mesh(clusters=clusters, links=[LINK], topic=topic_name, folder=tmp_path, rule={})
    link.make_topics()
    admin = Admin(secured.source.client_properties, "a")
    mine = f"User:{topic_name[-8:]}"
    fenced = Settings(by="a test", fence=(mine,), quiet_seconds=0.5, timeout_seconds=3.0)

    def rules() -> set[str]:
        return {str(acl) for acl in admin.acls() if acl.principal == mine}

    try:
        link.start(LINK)
        until_ready(link)
        writer, written = Writer(link), threading.Event()
        before = rules()
        with pytest.raises(FailoverStopped, match=rf"fence: 1 topic has no ACL that allows anything: {topic_name}; "):
            run(link, fenced)  # a DENY would keep out more than it names
        assert rules() == before
        admin.add_acls_each([TopicAcl(topic_name, "LITERAL", "User:another", "*", "WRITE", "ALLOW")]).or_raise()
        seen: list[set[str]] = []
        with (
            at_work(written, writer.work),
            pytest.raises(FailoverStopped, match=r"producers: not within 3 s: producers still write to 2 partitions"),
        ):
            run(link, fenced, tell=lambda step: seen.append(rules()) if step.name == "fence" else None)
        assert seen == [{f"DENY WRITE on topic {topic_name} to {mine}"}]
        assert rules() == before
        _, record = failovers.history(link.handle(LINK))
        assert (record.outcome, record.fence, stopped(link)) == ("aborted", (), False)
        done = run(link, replace(fenced, timeout_seconds=60.0))
        assert (done.outcome, done.id != record.id) == ("done", True)
        assert rules() == {f"DENY WRITE on topic {topic_name} to {mine}"}
        _, lifted = failovers.unfence(link.handle(LINK), lambda _: None)
        assert (lifted, rules()) == (1, before)
        again = run(link, fenced)  # what is asked for now is done now
        assert (again.id != done.id, len(again.fence), len(rules() - before)) == (True, 1, 1)
        wrong = {**secured.sasl(secured.source, "PLAIN"), "sasl.password": "wrong"}
        refused = link.file.model_copy(update={"clusters": {**link.file.clusters, "a": wrong}})
        broken = {**secured.tls(secured.source, secured.authority.issue("x")), "ssl.ca.location": "/nowhere/ca.pem"}
        unreadable = link.file.model_copy(update={"clusters": {**link.file.clusters, "a": broken}})
        tried = failovers.dry_run(ConfiguredLink.of(unreadable, link.name(LINK)), "unplanned", QUICK, lambda _: None)
        source = next(step for step in tried.steps if step.name == "source")
        assert (source.verdict, "whether cluster a answers is not known" in source.detail) == ("failed", True)
        assert Observation(link.handle(LINK)).source_trouble() == ""
        assert "uthentication" in Observation(ConfiguredLink.of(refused, link.name(LINK))).source_trouble()
    finally:
        link.stop()


def test_rights_are_looked_at_without_a_commit(secured: Secured, topic_name: str) -> None:
    group, place = f"{topic_name}-tried", TopicPartition(topic_name, 0)
    Admin(secured.destination.client_properties, "b").create([NewTopic(topic_name, 1, 1)])
    nobody = secured.tls(secured.destination, secured.authority.issue("nobody"))
    for there in (False, True):  # the group
        for properties, may in ((nobody, False), (secured.destination.client_properties, True)):
            with ConsumerGroups(properties, "b") as groups:
                found = groups.try_commit({group: {place: Committed(9, "")}})[group][place]
            assert found and (found != error_codes.GROUP_AUTHORIZATION_FAILED) is may
        assert committed(secured.destination, group, topic_name) == ({0: 3} if there else {})
        commit(secured.destination, group, {place: 3})


def test_an_open_transaction_is_waited_for_and_named(make_link: MakeLink, topic_name: str) -> None:
    link = make_link()
    until_ready(link)
    writer = Transactions(link.clusters["a"], topic_name, topic_name, link.partitions)
    writer.begin()
    writer.write(4)
    told: list[str] = []

    def tell(step: FailoverStep) -> None:
        told.append(step.detail)
        if step.verdict == "waiting" and "transactions are open" in step.detail:
            writer.commit()

    record = run(link, tell=tell)
    assert record.outcome == "done"
    assert any("2 transactions are open" in text and "from offset 0 by producer id" in text for text in told)
    assert sum(len(records) for records in read_all(link.clusters["b"], topic_name, 2)) == 4


def test_of_two_at_once_the_one_that_began_first_gives_up(make_link: MakeLink) -> None:
    link = make_link()
    until_ready(link)
    others: list[Failover] = []

    def tell(step: FailoverStep) -> None:
        if step.name == "producers" and not others:
            others.append(run(link))

    with pytest.raises(FailoverTakenOver, match="another process has taken it over"):
        run(link, tell=tell)
    assert others[0].outcome == "done"
    assert stopped(link)
    assert failovers.history(link.handle(LINK)) == others  # the loser's last words do not count
    again = run(link)  # a new look, at a link that is stopped
    assert (again.outcome, again.plans) == ("done", others[0].plans)


def test_one_that_was_taken_over_at_its_stop_does_not_stop_the_link(
    make_link: MakeLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even after it has announced the stop: the other one may take everything back."""
    link = make_link()
    until_ready(link)
    real = pausing.set_stopped

    def taken_over(*given: Any, **how: Any) -> Any:
        monkeypatch.setattr(pausing, "set_stopped", real)
        journal = Journal(handle_into(link.clusters["b"].client_properties, "b", link.name(LINK)))
        (record,) = journal.all()
        assert verdicts(record)["stop"] == "waiting"
        Turn(record, journal, lambda _: None, None)
        return real(*given, **how)

    monkeypatch.setattr(pausing, "set_stopped", taken_over)
    with pytest.raises(FailoverTakenOver):
        run(link)
    assert not stopped(link)
    assert run(link).outcome == "done"


def test_a_clock_that_is_ahead_holds_nothing_up_and_hides_no_slot(
    make_link: MakeLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = make_link()
    until_ready(link)
    now, now_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: now() + 9)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 9_000_000_000)
    assert verdicts(failovers.dry_run(link.handle(LINK), "planned", QUICK, lambda _: None))["copying"] == "done"
    told: list[str] = []
    record = run(link, tell=lambda step: told.append(f"{step.verdict} {step.name} {step.detail}"))
    assert (record.outcome, verdicts(record)["copying"]) == ("done", "done"), told
    assert link_groups(link.handle(LINK), listen_seconds=2.0).groups[0].slots[0].silent


def test_a_failover_cut_off_at_its_stop_looks_again_if_the_link_was_not_stopped(
    make_link: MakeLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written meanwhile is copied before the link stops."""
    link = make_link()
    until_ready(link)
    writer = Writer(link)
    writer.write(20)

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("strait.control.failover.planned.stop", killed)
        with pytest.raises(Killed):
            run(link)
    assert not stopped(link)
    writer.write(300)
    record = run(link)
    assert (record.outcome, record.rpo_records, sum(end.offset for end in record.ends)) == ("done", 0, 320)
    assert read_all(link.clusters["a"], link.topic, 2) == read_all(link.clusters["b"], link.topic, 2)


def test_what_is_not_moved_of_groups_is_named(make_link: MakeLink, topic_name: str) -> None:
    link = make_link()
    until_ready(link)
    Writer(link).write(20)
    other, group = f"{topic_name}-elsewhere", f"{topic_name}-both"
    Admin(link.clusters["a"].client_properties, "a").create([NewTopic(other, 1, 1)])
    commit(link.clusters["a"], group, {TopicPartition(topic_name, 0): 3, TopicPartition(other, 0): 0})
    commit(link.clusters["a"], f"strait.{group}", {TopicPartition(topic_name, 0): 3})
    handle = link.handle(LINK)
    for record in (
        failovers.dry_run(handle, "planned", QUICK, lambda _: None),
        failovers.rehearse(handle, QUICK, lambda _: None),
    ):
        (detail,) = (step.detail for step in record.steps if step.name == "groups")
        assert f"in topics that the link does not copy: {group} ({other})" in detail
        assert f"1 group whose name begins with strait.: strait.{group}" in detail
    record = run(link)
    assert (record.outcome, record.groups, record.groups_exact, verdicts(record)["groups"]) == ("done", 1, 1, "warning")
    assert committed(link.clusters["b"], f"strait.{group}", topic_name) == {}


def test_members_that_have_committed_nothing_are_seen(make_link: MakeLink, topic_name: str) -> None:
    link = make_link()
    until_ready(link)
    Writer(link).write(20)
    reader = Reader(link.clusters["a"], f"{topic_name}-silent", topic_name)
    reader.read(10)
    with pytest.raises(FailoverStopped, match=f"1 group has members on the source: {topic_name}-silent"):
        run(link, replace(QUICK, timeout_seconds=5.0))
    reader.leave()
    assert run(link).groups_exact == 1


def test_a_member_of_a_group_that_rebalances_is_seen(make_link: MakeLink, topic_name: str) -> None:
    """Its topics are unknown while another member, here of another topic, keeps the group from assigning any."""
    link, group, other = make_link(), f"{topic_name}-joins", f"{topic_name}-elsewhere"
    until_ready(link)
    Writer(link).write(20)
    Admin(link.clusters["a"].client_properties, "a").create([NewTopic(other, 1, 1)])
    Writer(link, other, partitions=1).write(5)
    first = Reader(link.clusters["a"], group, other)
    first.read(5)
    alone = failovers.dry_run(link.handle(LINK), "planned", QUICK, lambda _: None)
    assert (verdicts(alone)["consumers"], verdicts(alone)["quiet"]) == ("done", "done")
    second = Reader(link.clusters["a"], group, topic_name)
    found: dict[str, FailoverStep] = {}

    def joins() -> bool:
        second.take()
        record = failovers.dry_run(link.handle(LINK), "planned", QUICK, lambda _: None)
        found.update({step.name: step for step in record.steps})
        return found["consumers"].verdict == "waiting"

    eventually(joins, what=lambda: f"the group rebalances: {found}")
    assert f"1 group has members on the source: {group}: " in found["consumers"].detail
    assert "the group rebalances, so the topics of its members are unknown" in found["consumers"].detail
    assert found["quiet"].verdict == "waiting"  # it may be a group of other topics, so this stops no failover
    for reader in (second, first):
        reader.leave()
    assert run(link).outcome == "done"


@pytest.mark.core
def test_what_holds_it_up_is_named_and_a_dry_run_changes_nothing(make_link: MakeLink, topic_name: str) -> None:
    link = make_link()
    until_ready(link)
    Writer(link).write(50)
    group = f"{topic_name}-at-work"
    reader = Reader(link.clusters["a"], group, topic_name)
    reader.read(10)
    reader.commit()
    Admin(link.clusters["a"].client_properties, "a").grow_each({topic_name: 3})
    record = failovers.dry_run(link.handle(LINK), "planned", QUICK, lambda _: None)
    found = verdicts(record)
    assert (found["copying"], found["consumers"]) == ("failed", "waiting")
    details = {step.name: step.detail for step in record.steps}
    assert f"1 group has members on the source: {group}" in details["consumers"]
    assert "partitions" in details["copying"], details
    assert not stopped(link)
    assert failovers.history(link.handle(LINK)) == []
    reader.read(5)
    reader.leave()
    with pytest.raises(FailoverStopped, match="run strait apply first"):
        run(link)
    assert failovers.history(link.handle(LINK))[0].outcome == "aborted"


def test_a_look_ahead_judges_groups_as_the_failover_does(make_link: MakeLink, topic_name: str) -> None:
    link = make_link()
    until_ready(link)
    Writer(link).write(200)
    first, second = TopicPartition(topic_name, 0), TopicPartition(topic_name, 1)
    source, destination = link.clusters["a"], link.clusters["b"]
    back, gone = f"{topic_name}-back", f"{topic_name}-gone"
    commit(source, gone, {second: 5})
    commit(source, back, {first: 20})
    commit(destination, back, {first: 50})  # by nobody who was ever seen there
    delete_before(source, second, 10)

    def look(*accept: str) -> FailoverStep:
        record = failovers.dry_run(link.handle(LINK), "planned", replace(QUICK, accept_inexact=accept), lambda _: None)
        return next(step for step in record.steps if step.name == "groups")

    eventually(
        lambda: "1 of 2 groups continue exactly" in look().detail,  # once the slot has seen where the log begins
        what=lambda: f"what the source has deleted too is not missed: {look().detail}",
    )
    assert (look().verdict, look(back).verdict) == ("failed", "warning")
    assert f"{back} in {topic_name}-0 at 50 instead of 20" in look().detail
    delete_before(destination, second, 30)
    assert f"{gone} (1 behind; deleted)" in look().detail
    assert committed(destination, gone, topic_name) == {}
    with pytest.raises(FailoverStopped, match=rf"groups: .*{gone} \(1 in sync; deleted\)"):
        run(link, replace(QUICK, accept_inexact=(back,)))
    done = run(link, replace(QUICK, accept_inexact=(back, gone)))
    assert (done.outcome, verdicts(done)["groups"]) == ("done", "warning")
    Writer(link).write(7)
    again = run(link)
    assert (again.outcome, again.id != done.id, sum(item.to_offset - item.from_offset for item in again.missing)) == (
        *("done", True, 7),
    )
    assert verdicts(again) == {"earlier": "warning", "verify": "warning", "reverse": "warning"}
    assert done.id in again.steps[0].detail


@pytest.mark.core
def test_without_the_source_what_is_missing_is_named(clusters: Any, topic_name: str, tmp_path: Path) -> None:
    """The link is too slow for all that was written when its source is lost."""
    source = Cluster(tmp_path / "source")
    source.start()
    both = {"a": source, "b": clusters.destination}
    link = Mesh(
        clusters=both,
        links=[LINK],
        topic=topic_name,
        folder=tmp_path,
        rule={},
        topics={"budget": {"bytes_per_second": 20_000}},
    )
    try:
        link.make_topics()
        link.start(LINK)
        until_ready(link)
        producer = Producer(source.client_properties | {"batch.size": 4_000, "linger.ms": 0})
        for number in range(200):
            producer.produce(topic_name, b"v" * 4_000, b"%d" % number, number % link.partitions)
            producer.flush(30)
        eventually(
            lambda: (
                sum(ends(link.clusters["b"], topic_name, 2)) > 10
                and all(report.end == 100 for report in link.reports(LINK))
            ),
            what=lambda: f"some are copied: {link.reports(LINK)}",
        )
        commit(source, f"{topic_name}-kept", {TopicPartition(topic_name, 0): 1})
        of_link = GroupSync(link.handle(LINK))
        assert [status.synced for status in of_link.sync()] == [True]
        with pytest.raises(FailoverStopped, match="cluster a answers: a planned failover loses nothing"):
            run(link, kind="unplanned")
        assert [item.outcome for item in failovers.history(link.handle(LINK))] == ["aborted"]
        source.stop()
        worker, code = f"{topic_name}-worker", "UNSTABLE_OFFSET_COMMIT"
        commit(clusters.destination, worker, {TopicPartition(topic_name, 0): 0})
        at_work = Consumer(clusters.destination.client_properties | {"group.id": worker}).consumer_group_metadata()
        transaction = Producer(clusters.destination.client_properties | {"transactional.id": worker})
        transaction.init_transactions()
        transaction.begin_transaction()
        transaction.send_offsets_to_transaction([KafkaPartition(topic_name, 0, 1)], at_work)
        record = run(link, kind="unplanned")
        transaction.abort_transaction()
        assert record.outcome == "done"
        detail = next(step.detail for step in record.steps if step.name == "groups")
        assert f"offsets of 1 group on the destination cannot be read: {worker} ({code})" in detail
        copied = ends(link.clusters["b"], topic_name, 2)
        assert {(item.partition, item.from_offset, item.to_offset) for item in record.missing} == {
            (partition, count, 100) for partition, count in enumerate(copied) if count < 100
        }
        assert record.rpo_records == 200 - sum(copied) > 0
        (of_topic,) = record.topics
        assert (of_topic.topic, of_topic.missing) == (topic_name, record.rpo_records)
        assert of_topic.seconds is not None and of_topic.seconds > 0
        assert [(group.group, group.continues, group.why) for group in record.group_list] == [
            (f"{topic_name}-kept", "unknown", ""),
            (worker, "unknown", code),
        ]
        lines = screen(record, "b:1")
        assert any(f"look at the offsets of 2 groups: {topic_name}-kept, {worker}" in line for line in lines)
        assert any(
            f"{plural(record.rpo_records or 0, 'offset that was', 'offsets that were')} seen: {topic_name}" in line
            for line in lines
        )
        assert stopped(link)
        again = run(link, kind="unplanned")
        assert (again.id != record.id, again.missing, again.rpo_seconds) == (True, record.missing, record.rpo_seconds)
        assert (again.topics, again.group_list) == (record.topics, record.group_list)
        assert verdicts(again).keys() == {"earlier", "reverse"}
    finally:
        link.stop()
        source.stop()


def test_the_journal_tells_whose_turn_it_is(make_link: MakeLink) -> None:
    link = make_link()
    properties = link.clusters["b"].client_properties
    journal, name = Journal(handle_into(properties, "b", link.name(LINK))), link.name(LINK)
    assert journal.all() == []
    first = Failover(
        id="1",
        link=name,
        source="a",
        destination="b",
        kind="planned",
        by="x",
        turn="t1",
        strait_version="0",
        began_at_ms=1,
    )
    journal.write(first)
    second = first.model_copy(update={"turn": "t2"})
    Journal(handle_into(properties, "b", name)).write(second)
    with pytest.raises(FailoverTakenOver):
        journal.write(first)
    Journal(handle_into(properties, "b", name)).write(second)
    assert [record.turn for record in journal.all()] == ["t2"]
    assert [record.turn for record in Journal(handle_into(properties, "b", name)).all()] == ["t2"]


def test_a_rehearsal_touches_nobody_and_scores_what_is_missing(make_link: MakeLink, topic_name: str) -> None:
    """Consumers and producers are at work; nothing of it is left but the report."""
    link = make_link()
    until_ready(link)
    Writer(link).write(200)
    group = f"{topic_name}-at-work"
    reader = Reader(link.clusters["a"], group, topic_name)
    reader.read(150)  # of both partitions, which have 100 each
    reader.commit()
    eventually(
        lambda: all(row.state == "caught_up" for row in link_groups(link.handle(LINK)).rows),
        what="all is copied",
    )
    record = failovers.rehearse(link.handle(LINK), QUICK, lambda _: None)
    found = verdicts(record)
    details = {step.name: step.detail for step in record.steps}
    assert found == dict.fromkeys(("copying", "topics", "settings", "tail", "shadow", "records"), "done") | {
        "groups": "done",  # it would, once its offsets are committed
        "audited": "warning",
        "reverse": "warning",
    }
    assert "the offsets of 1 group were committed under other names" in details["shadow"]
    assert "the next record is the same on both sides in 2 partitions" in details["records"]
    assert (record.score, record.groups, record.groups_exact, record.rpo_records) == (89, 1, 0, 0)
    with ConsumerGroups(link.clusters["b"].client_properties, "b") as groups:
        assert [name for name in groups.listed() if topic_name in name] == []
    assert not stopped(link)
    Admin(link.clusters["b"].client_properties, "b").alter_each(
        {topic_name: ConfigChange({"retention.ms": "3600000"}, ())}
    )
    worse = failovers.rehearse(link.handle(LINK), QUICK, lambda _: None)
    assert f"{topic_name}: retention.ms 3600000 instead of 604800000" in str(worse.steps)
    assert worse.score == 83
    audit = planned_between(link.clusters["a"], link.clusters["b"], link.handle(LINK).name)
    publish(link.handle(LINK).destination, link.handle(LINK).name, audit().whole)
    proven = failovers.rehearse(link.handle(LINK), QUICK, lambda _: None)
    (step,) = (step for step in proven.steps if step.name == "audited")
    assert step.verdict == "done", step.detail
    assert "all records of 1 of 1 topic" in step.detail
    assert proven.score == 89
    reader.read(20)
    reader.leave()
    assert run(link).outcome == "done"
    assert [item.kind for item in failovers.history(link.handle(LINK))] == [
        "rehearsal",
        "rehearsal",
        "rehearsal",
        "planned",
    ]


def test_the_links_own_heartbeats_are_no_producer(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(settings={"heartbeats": {"enabled": True, "topic": f"{topic_name}-beats"}})
    with Control(link.file, link.name(LINK)) as control:
        control.apply()  # their topic is there now, and is copied
    until_ready(link)
    Writer(link).write(20)
    eventually(lambda: len(link_groups(link.handle(LINK)).rows) == 3, what="heartbeats are copied")
    assert run(link, replace(QUICK, quiet_seconds=3.0, timeout_seconds=30.0)).outcome == "done"


def test_a_users_topic_that_is_called_like_heartbeats_is_a_topic_like_others(
    make_link: MakeLink, topic_name: str
) -> None:
    link = make_link(topic=f"{topic_name}.heartbeats")
    until_ready(link)
    writer, written = Writer(link), threading.Event()
    with (
        at_work(written, writer.work),
        pytest.raises(FailoverStopped, match=r"producers: not within 3 s: producers still write to 2 partitions"),
    ):
        run(link, replace(QUICK, timeout_seconds=3.0))
    assert {part.place.topic for part in TailReader(link.handle(LINK)).parts} == {link.topic}


def test_a_failover_and_one_in_the_other_direction_exclude_each_other(
    make_mesh: Callable[..., Mesh], topic_name: str
) -> None:
    """Each would stop the link that the other one needs."""
    there, back = LINK, ("b", "a")
    mesh = make_mesh(links=[there, back])
    for link in (there, back):
        mesh.start(link)
    for link in (there, back):
        until_ready(mesh, link)
    refused: list[str] = []

    def tell(step: FailoverStep) -> None:
        if step.name == "producers" and not refused:
            with pytest.raises(FailoverStopped) as error:
                failovers.run(mesh.handle(back), "planned", QUICK, lambda _: None)
            refused.append(str(error.value))

    done = failovers.run(mesh.handle(there), "planned", QUICK, tell)
    assert done.outcome == "done"
    assert f"link {mesh.name(there)}: failover {done.id}, which a test began" in refused[0]
    assert "is not over: strait failover" in refused[0]
    assert [item.outcome for item in failovers.history(mesh.handle(back))] == ["aborted"]
    assert not link_groups(mesh.handle(back)).stopped


def test_topics_move_in_waves_while_the_link_copies_the_others(make_link: MakeLink, topic_name: str) -> None:
    """Producers of the second topic write, and a consumer of it works, while the first one moves; then the rest moves."""
    first, second = topic_name, f"{topic_name}-second"
    link = make_link(topics={"include": [first, second]}, second=second)
    until_ready(link)
    name, clusters = link.name(LINK), link.clusters
    writer, on_second = Writer(link), Writer(link, second)
    writer.write(100)
    groups = {f"{topic_name}-{which}": topics for which, topics in {"one": [first], "both": [first, second]}.items()}
    for group, topics in groups.items():
        for topic in topics:
            commit(clusters["a"], group, {TopicPartition(topic, 0): 20})
    staying = f"{topic_name}-two"
    beside = Reader(clusters["a"], staying, second)
    wave = replace(QUICK, wave=Wave((first,)))
    with at_work(written := threading.Event(), on_second.work, beside.work):
        eventually(lambda: len(beside.keys) > 20, what="a consumer is at work beside")
        record = run(link, wave)
        assert not written.is_set()
        before = sum(ends(clusters["b"], second, 2))
        eventually(lambda: sum(ends(clusters["b"], second, 2)) > before, what="the other topic is copied on")
    assert record.outcome == "done", record.steps
    assert (record.wave_topics, record.topics_left, [item.topic for item in record.topics]) == ((first,), 1, [first])
    assert {item.group: item.continues for item in record.group_list} == dict.fromkeys(groups, "exactly")
    assert not stopped(link)
    assert f"link {name} still copies 1 other topic: strait failover {name}" in "\n".join(next_steps(record, ""))
    assert left_behind(record) == [
        f"1 topic is paused on link {name}: {first}: strait resume {name} TOPIC lets it copy one again"
    ]
    for group in groups:
        assert committed(clusters["b"], group, first) == {0: 20}
    writer.write(2)  # somebody has forgotten a producer
    again = run(link, wave)
    assert (verdicts(again)["earlier"], again.rpo_records, again.topics_left) == ("warning", 2, 1)
    assert ends(clusters["b"], first, 2) == [50, 50]
    both = f"{topic_name}-both"
    commit(clusters["b"], both, {TopicPartition(first, 0): 3})  # somebody processes these again, over there
    with pytest.raises(FailoverStopped, match="but those moved before"):
        run(link, replace(QUICK, wave=Wave((f"{first}.{{0}}",))))
    rest = run(link)
    assert (rest.outcome, rest.rpo_records, [item.topic for item in rest.topics]) == ("done", 0, [second])
    assert {item.group: item.continues for item in rest.group_list} == {staying: "exactly", both: "exactly"}
    assert committed(clusters["b"], both, first) == {0: 3}
    assert stopped(link)
    assert rest.still_paused == (first,)
    paused = f"1 topic that earlier waves moved is still paused: {first}: strait start copies none of them before"
    assert f"{paused} strait resume {name} TOPIC" in "\n".join(screen(rest, ""))
    assert run(link).still_paused == (first,)
    assert read_all(clusters["a"], second, 2) == read_all(clusters["b"], second, 2)


def test_a_topic_that_comes_after_the_stop_of_a_wave_is_not_moved_by_it(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    """The process was cut off behind the stop, and the next one goes on with the topics whose producers had stopped."""
    late, ready = f"{topic_name}-late", tmp_path / "ready"
    hook = {"after": "stop", "command": ["test", "-e", str(ready)]}
    link = make_link(topics={"regex": [f"{topic_name}.*"]}, settings={"failover": {"hooks": [hook]}})
    until_ready(link)
    Writer(link).write(20)
    wave = replace(QUICK, wave=Wave((f"{topic_name}.*",)))
    with pytest.raises(FailoverStopped, match=r"after stop: test -e .* exited with 1"):
        run(link, wave)
    Admin(link.clusters["a"].client_properties, "a").create([NewTopic(late, 2, 1)])

    def planned() -> bool:
        with Control(link.file, link.name(LINK)) as control:
            return late in {topic.source for topic in control.apply().plan.topics}

    eventually(planned, what="the new topic is planned")
    ready.touch()
    record = run(link, wave)
    assert (record.outcome, [item.topic for item in record.topics], record.topics_left) == ("done", [topic_name], 1)
    on_late = Writer(link, late)
    on_late.write(10)
    eventually(lambda: sum(ends(link.clusters["b"], late, 2)) == 10, what="the new topic is copied")


def test_a_wave_goes_back_once_its_topics_are_copied_again(make_mesh: Callable[..., Mesh], topic_name: str) -> None:
    there, back = LINK, ("b", "a")
    mesh = make_mesh(links=[there, back])
    for link in (there, back):
        mesh.start(link)
    mesh.write("a", 20)
    mesh.until_everywhere()
    for link in (there, back):
        until_ready(mesh, link)
    wave = replace(QUICK, wave=Wave((topic_name,)), include_moved=True)
    assert failovers.run(mesh.handle(there), "planned", wave, lambda _: None).outcome == "done"
    with pytest.raises(FailoverStopped, match=f"tail: link {mesh.name(there)} does not copy 1 of these topics"):
        failovers.run(mesh.handle(back), "planned", wave, lambda _: None)
    pausing.resume(mesh.handle(there), Scope(topic_name))
    until_ready(mesh, there)
    assert failovers.run(mesh.handle(back), "planned", wave, lambda _: None).outcome == "done"


def test_of_a_waves_groups_only_those_that_are_named_move(make_link: MakeLink, topic_name: str) -> None:
    link = make_link()
    until_ready(link)
    Writer(link).write(40)
    mine, other = f"{topic_name}-mine", f"{topic_name}-other"
    commit(link.clusters["a"], mine, {TopicPartition(topic_name, 0): 5})
    reader = Reader(link.clusters["a"], other, topic_name)
    reader.read(40)
    reader.commit()  # it stays, and holds nothing up
    record = run(link, replace(QUICK, wave=Wave((topic_name,), (mine,))))
    reader.leave()
    assert {item.group: item.continues for item in record.group_list} == {mine: "exactly", other: "not_moved"}
    assert (
        f"not moved, though they have offsets in these topics: {other}"
        in {step.name: step.detail for step in record.steps}["groups"]
    )
    with pytest.raises(FailoverStopped, match="needs the source"):
        run(link, replace(QUICK, wave=Wave((topic_name,))), kind="unplanned")


def test_hooks_switch_a_gateway_and_its_clients_do_not_notice(tmp_path: Path, topic_name: str) -> None:
    """Clients that know the gateway alone work all the time; hooks close it, lead it to the destination, and, where
    the failover is taken back, to the source again."""
    (door,) = free_ports(1)
    clusters = {name: GatedCluster(tmp_path / name, door) for name in "ab"}
    leads_to, ready = tmp_path / "gateway", tmp_path / "ready"
    with clusters["a"], clusters["b"]:
        ports = json.dumps({name: cluster.inside for name, cluster in clusters.items()})

        def lead(**moment: str) -> dict[str, Any]:
            ((when, step), (_, to)) = moment.items()
            return {when: step, "command": [sys.executable, switch.__file__, str(leads_to), ports, to]}

        hooks = [
            lead(after="fence", to="none"),
            {"before": "stop", "command": ["test", "-e", str(ready)]},
            lead(after="stop", to="destination"),
            lead(after="take_back", to="source"),
        ]
        mesh = Mesh(
            clusters=clusters,
            links=[LINK],
            topic=topic_name,
            folder=tmp_path,
            rule={},
            settings={"failover": {"hooks": hooks}},
        )
        mesh.make_topics()
        mesh.start(LINK)
        leads_to.write_text(str(clusters["a"].inside))
        through = clusters["a"].door_properties
        keys: set[bytes] = set()
        producer = Producer(through | {"message.timeout.ms": 300_000, "reconnect.backoff.max.ms": 500})

        def write(stopped: threading.Event) -> None:
            number = 0
            while not stopped.is_set():
                producer.produce(topic_name, b"value", b"%d" % number, on_delivery=lambda _, it: keys.add(it.key()))
                number += 1
                producer.poll(0.02)
            assert producer.flush(60) == 0

        group = f"{topic_name}-group"
        try:
            with Gateway(door, leads_to):
                reader = Reader(clusters["a"], group, topic_name, properties=through)
                with at_work(threading.Event(), write, reader.work):
                    eventually(lambda: len(reader.keys) > 50, what="clients are at work")
                    until_ready(mesh)
                    with pytest.raises(FailoverStopped, match=r"before stop: test -e .* exited with 1"):
                        run(mesh)
                    record = failovers.history(mesh.handle(LINK))[-1]
                    assert verdicts(record)["after take back"] == "done"
                    before = len(reader.keys)
                    eventually(lambda: len(reader.keys) > before + 20, what="clients are at work on the source again")
                    ready.touch()
                    record = run(mesh)
                    assert (record.outcome, record.missing) == ("done", ()), record.steps
                    assert (verdicts(record)["after fence"], verdicts(record)["after stop"]) == ("done", "done")
                    moved_at = len(reader.keys)
                    eventually(lambda: len(reader.keys) > moved_at + 50, what="clients are at work on the destination")
                    assert sum(ends(clusters["b"], topic_name, 2)) > sum(ends(clusters["a"], topic_name, 2))
                    assert verdicts(run(mesh)) == {"earlier": "warning", "verify": "done", "reverse": "warning"}
                    assert leads_to.read_text() == str(clusters["b"].inside)  # nothing was closed or led back
        finally:
            mesh.stop()
        rest = Reader(clusters["b"], group, topic_name)
        eventually(lambda: (rest.take(), keys <= {*reader.keys, *rest.keys})[1], what="every record is read")
        rest.leave()


def test_back_and_forth_with_links_both_ways(make_mesh: Callable[..., Mesh], topic_name: str) -> None:
    """A group follows to b and back to a, and meets each record once, of either side."""
    there, back, group = LINK, ("b", "a"), f"{topic_name}-group"
    mesh = make_mesh(links=[there, back])
    for link in (there, back):
        mesh.start(link)
    seen: list[bytes] = []

    def stint(cluster: str, records: int) -> None:
        reader = Reader(mesh.clusters[cluster], group, topic_name)
        reader.read(records)
        reader.leave()
        seen.extend(reader.values)

    mesh.write("a", 200)
    stint("a", 120)
    mesh.until_everywhere()
    for link in (there, back):
        until_ready(mesh, link)
    done = failovers.run(mesh.handle(there), "planned", QUICK, lambda _: None)
    assert (done.outcome, done.groups_exact, done.rpo_records) == ("done", 1, 0), done.steps
    mesh.write("b", 100)
    stint("b", 130)
    mesh.kill(there)
    with pytest.raises(FailoverStopped, match=r"strait start .* copies them"):  # nobody knows what a has got since
        failovers.run(mesh.handle(back), "planned", replace(QUICK, timeout_seconds=30.0), lambda _: None)
    set_stopped(mesh.handle(there), stopped=False, by="a test")
    mesh.start(there)
    mesh.until_everywhere()
    until_ready(mesh, there)
    with pytest.raises(FailoverStopped, match="--include-moved"):
        failovers.run(mesh.handle(back), "planned", replace(QUICK, timeout_seconds=30.0), lambda _: None)
    done = failovers.run(mesh.handle(back), "planned", replace(QUICK, include_moved=True), lambda _: None)
    assert (done.outcome, done.groups_exact, done.rpo_records) == ("done", 1, 0), done.steps
    stint("a", 50)
    assert len(seen) == len(set(seen)) == 300
