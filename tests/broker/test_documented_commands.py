"""What the pages tell a reader to type, typed as it is written, against two real clusters.

Names of links and topics, and the clusters' addresses, become the test's own; nothing else is changed. A slot in this
process takes the place of `strait run`, but for the README, which a newcomer walks with the real one.
"""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.config.links import load_link
from strait.control.plane import Control
from strait.kafka.admin import Admin, NewTopic
from strait.reasons import Reason
from strait.state.quarantine_records import QuarantinedRecord
from strait.state.topics import ensure_state_topics
from strait.state.writer import StateWriter
from strait.wire.records import Record
from support import pages
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import read_all
from support.links.copying import copying
from support.pages import Command, SavedFile

pytestmark = [
    pytest.mark.broker,
    pytest.mark.timeout(900),
]

STRAIT = Path(sys.executable).with_name("strait")
PARTITIONS = 2
RECORDS = 200
NAMES = ("a-to-b", "b-to-a", "orders", "events")
LINKS = """\
clusters:
  a: {bootstrap.servers: "127.0.0.1:19092"}
  b: {bootstrap.servers: "127.0.0.1:29092"}
links:
  a-to-b: {source: a, destination: b, topics: {include: [orders], rules: [{match: orders, on_foreign: expect}]}}
  b-to-a: {source: b, destination: a, topics: {include: [orders], rules: [{match: orders, on_foreign: expect}]}}
"""
MM2 = """\
clusters = primary, backup
primary.bootstrap.servers = 127.0.0.1:19092
backup.bootstrap.servers = 127.0.0.1:29092
primary->backup.enabled = true
primary->backup.topics = orders
"""
MIRUS_WORKER = (
    "bootstrap.servers=127.0.0.1:29092\nkey.converter=org.apache.kafka.connect.converters.ByteArrayConverter\n"
)
MIRUS = {
    "name": "orders-to-backup",
    "config": {
        "connector.class": "com.salesforce.mirus.MirusSourceConnector",
        "topics.whitelist": "orders",
        "consumer.bootstrap.servers": "127.0.0.1:19092",
        "tasks.max": "2",
    },
}
FIRST = {"mm2.properties": MM2, "connector.json": json.dumps(MIRUS), "worker.properties": MIRUS_WORKER}

COPIED_BEFORE = ("alerts", "pause-and-stop", "rotate-credentials", "troubleshoot", "upgrade")
"""Pages whose reader has a link that copies already."""

TRANSFORMING = ("docs/how-to/copy-to-staging.md", "docs/how-to/route-by-tenant.md")
"""Pages with the real `strait run`, since Spark evaluates what they are about; each has a test of its own."""

Runner = Callable[[str], AbstractContextManager[Any]]


class Reader:
    """Somebody with a terminal, in a directory of their own."""

    def __init__(self, directory: Path, clusters: Any) -> None:
        self.directory = directory
        self.names = {name: f"{name}-{uuid.uuid4().hex[:6]}" for name in NAMES}
        self._addresses = {
            "127.0.0.1:19092": clusters.source.bootstrap,
            "127.0.0.1:29092": clusters.destination.bootstrap,
        }
        self.environment = os.environ | {
            "PATH": f"{STRAIT.parent}:{os.environ['PATH']}",
            "STRAIT_HOME": str(directory / "home"),
        }
        self.environment.pop("STRAIT_LINKS_FILE", None)
        for name, text in {"links.yaml": LINKS, **FIRST}.items():
            self.save(name, text)

    def own(self, text: str) -> str:
        """With the test's own names and addresses."""
        for written, ours in self._addresses.items():
            text = text.replace(written, ours)
        return re.sub(r"\b(" + "|".join(NAMES) + r")\b", lambda found: self.names[found[1]], text)

    def save(self, name: str, text: str) -> None:
        (self.directory / name).write_text(self.own(text), encoding="utf-8")

    def read(self, page: str, run: Runner) -> None:
        """Do what the page says, in order. What runs in the foreground runs until the end of the page."""
        with ExitStack() as terminals:
            for step in pages.steps(page):
                if isinstance(step, SavedFile):
                    self.save(step.name, step.text)
                elif found := re.fullmatch(r"strait run (\S+)", step.line):
                    terminals.enter_context(run(self.own(found[1])))
                else:
                    self.type(step)

    def type(self, command: Command) -> None:
        """Type it; again for a state, since a slot may not report for a while on a busy machine."""
        if command.line.startswith("strait status "):
            eventually(lambda: not self._missing(command)[0], what=lambda: self._missing(command)[1])
        else:
            missing, said = self._missing(command)
            assert not missing, said

    def _missing(self, command: Command) -> tuple[set[str], str]:
        """The words that the page shows and the command does not, and what to say of it."""
        done = subprocess.run(
            ["bash", "-c", self.own(command.line)],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=700,
            check=False,
        )
        assert done.returncode == 0, f"{command.line}\n{done.stdout}{done.stderr}"
        missing = {self.own(word) for word in command.first_words} - set(done.stdout.split())
        return missing, f"{command.line}: the page shows {missing}\n{done.stdout}"

    @contextmanager
    def in_this_process(self, link: str) -> Iterator[None]:
        """A slot of the link, without Spark."""
        file = load_link(self.directory / "links.yaml", link)
        with Control(file, link) as control, copying(control, self.directory / link):
            yield

    @contextmanager
    def in_the_foreground(self, link: str) -> Iterator[None]:
        """`strait run`, until Ctrl-C."""
        log = (self.directory / f"{link}.log").open("wb")
        run = subprocess.Popen(
            [STRAIT, "run", link], cwd=self.directory, env=self.environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            run.send_signal(signal.SIGINT)
            code = run.wait(60)
            log.close()
        assert code == 0, (self.directory / f"{link}.log").read_text()


@pytest.fixture
def reader(tmp_path: Path, clusters: Any) -> Reader:
    """With a topic of orders, and one of events, on the source."""
    found = Reader(tmp_path, clusters)
    make_topic(clusters.source, found.names["orders"])
    return found


def make_topic(cluster: Any, topic: str) -> None:
    Admin(cluster.client_properties, "it").create([NewTopic(topic, PARTITIONS, 1)])
    write(cluster, topic, "a")


def write(cluster: Any, topic: str, mark: str) -> None:
    producer = Producer(cluster.client_properties)
    for number in range(RECORDS):
        producer.produce(topic, key=f"{mark} {number}", value=str(number), partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def keys(cluster: Any, topic: str) -> list[str]:
    """Of all records, sorted."""
    return sorted(record.key.decode() for records in read_all(cluster, topic, PARTITIONS) for record in records)


QUARANTINE = "docs/how-to/replay-quarantine.md"
IN_AIRFLOW = "docs/how-to/use-the-api.md"
"""Typed in a real Airflow by `tests/e2e/airflow/test_api.py`."""

HOW_TO = [
    page
    for page in pages.runnable_pages()
    if page.startswith("docs/how-to/") and page not in (QUARANTINE, IN_AIRFLOW, *TRANSFORMING)
]


@pytest.mark.parametrize("page", HOW_TO)
def test_a_how_to_works_as_it_is_written(page: str, reader: Reader) -> None:
    with ExitStack() as stack:
        if Path(page).stem in COPIED_BEFORE:
            link = reader.names["a-to-b"]
            stack.enter_context(reader.in_this_process(link))
            reader.type(Command("strait wait a-to-b --for caught-up --timeout 5m"))
        reader.read(page, reader.in_this_process)


def test_the_how_to_on_quarantine_replays_what_was_rejected(reader: Reader, clusters: Any) -> None:
    link, topic = reader.names["a-to-b"], reader.names["orders"]
    admin = Admin(clusters.destination.client_properties, "b")
    admin.create([NewTopic(f"{topic}.replayed", PARTITIONS, 1)])
    ensure_state_topics(admin, link, None)
    writer, failed = StateWriter(clusters.destination.client_properties, "b", link), []
    for partition in range(PARTITIONS):
        rejected = Record(7, 1_600_000_000_000, b"key", f"of {partition}".encode(), ())
        quarantined = QuarantinedRecord(
            topic, partition, topic, rejected, Reason.BATCH_REFUSED, "its timestamp is too old"
        )
        writer.write_quarantined(quarantined, failed.append)
    assert writer.flush(60)
    assert failed == [None] * PARTITIONS
    reader.read(QUARANTINE, reader.in_this_process)
    replayed = read_all(clusters.destination, f"{topic}.replayed", PARTITIONS)
    assert [[record.value for record in records] for records in replayed] == [[b"of 0"], [b"of 1"]]


def test_the_first_link_works_as_it_is_written(reader: Reader, clusters: Any) -> None:
    reader.read("docs/tutorials/first-link.md", reader.in_this_process)
    copied = ends(clusters.destination, reader.names["events"], 3)
    assert sum(copied) == 1000


def test_a_newcomer_gets_from_the_readme_alone_to_a_link(reader: Reader, clusters: Any) -> None:
    topic = reader.names["events"]
    make_topic(clusters.source, topic)

    def run(link: str) -> AbstractContextManager[Any]:
        return reader.in_the_foreground(link)

    with ExitStack() as after:
        reader.read("README.md", lambda link: _keep(after, run(link)))
        write(clusters.source, topic, "b")
        eventually(lambda: sum(ends(clusters.destination, topic, PARTITIONS)) >= 2 * RECORDS, what="all records")
    wanted = sorted(f"{mark} {number}" for mark in "ab" for number in range(RECORDS))
    assert keys(clusters.destination, topic) == wanted


@pytest.mark.spark
def test_a_masked_part_is_copied_as_the_how_to_says_and_nothing_after_it(reader: Reader, clusters: Any) -> None:
    link, topic = reader.names["a-to-b"], reader.names["orders"]
    reader.read(TRANSFORMING[0], reader.in_the_foreground)
    part = keys(clusters.destination, topic)
    assert 0 < len(part) < RECORDS / 2 and all(len(key) == 64 for key in part)
    write(clusters.source, topic, "later")
    with reader.in_the_foreground(link):
        reader.type(Command("strait wait a-to-b --for caught-up --timeout 5m"))
        reader.type(Command("strait status a-to-b", ("finished",)))
    assert keys(clusters.destination, topic) == part


@pytest.mark.spark
def test_records_of_tenants_are_routed_as_the_how_to_says(reader: Reader, clusters: Any) -> None:
    topic = reader.names["orders"]
    for tenant in ("acme-1", "globex-1", "other-1"):
        write(clusters.source, topic, tenant)
    reader.read(TRANSFORMING[1], reader.in_the_foreground)
    for tenant, prefixes in {"acme": ("acme-1",), "globex": ("globex-1",), "others": ("a", "other-1")}.items():
        wanted = sorted(f"{prefix} {number}" for prefix in prefixes for number in range(RECORDS))
        assert keys(clusters.destination, f"{topic}.{tenant}") == wanted


@contextmanager
def _keep(stack: ExitStack, inner: AbstractContextManager[Any]) -> Iterator[None]:
    """Entered now, left with the stack."""
    stack.enter_context(inner)
    yield
