"""Secrets stand in the links file, the spec and librdkafka's memory, and nowhere else, right or wrong ones."""

import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import yaml
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from strait.config import naming
from strait.embedded.kafka import Cluster
from strait.errors import ConfigError, NotAuthorized
from strait.kafka.admin import Admin
from strait.net.addresses import parse_addresses
from strait.net.handshake import dial
from strait.net.security import Security
from support.kafka.log_ends import ends
from support.security.secured import PASSWORD, SCRAM_PASSWORD, SECRET, Properties, Secured, link_between, produce

pytestmark = pytest.mark.broker
WRONG = "a-Wrong-Word"
PASSPHRASE = "a-Secret-of-the-key"


def doors(secured: Secured, cluster: Cluster, word: str | None = None) -> dict[str, Properties]:
    """Each way in that needs a secret; ``word`` stands for the right one."""
    identity = secured.authority.issue("ANONYMOUS")
    found = {name: secured.sasl(cluster, name) for name in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")}
    found["TLS"] = secured.tls(cluster) | {
        "ssl.certificate.pem": identity.pem,
        "ssl.key.pem": identity.key_pem(PASSPHRASE),
        "ssl.key.password": PASSPHRASE,
    }
    places = {"TLS": "ssl.key.password", "OAUTHBEARER": "sasl.oauthbearer.client.secret"}
    if word is not None:
        for name, properties in found.items():
            properties[places.get(name, "sasl.password")] = word
    return found


def look_for_secrets(secured: Secured, text: str, where: str) -> None:
    for secret in (PASSWORD, SCRAM_PASSWORD, SECRET, PASSPHRASE, WRONG, "PRIVATE KEY", *secured.tokens.given):
        assert secret not in text, f"{secret[:30]} stands in {where}"


def dial_it(properties: Properties) -> None:
    (address,) = parse_addresses("a", properties["bootstrap.servers"])
    dial("a", address, Security("a", properties)).close()


def look_by_librdkafka(properties: Properties) -> None:
    Admin(properties, "a").observe(lambda _: False)


@pytest.mark.parametrize("connect", [dial_it, look_by_librdkafka])
def test_neither_library_tells_a_secret_in_an_error_or_in_its_most_talkative_log(
    secured: Secured, caplog: pytest.LogCaptureFixture, connect: Callable[[Properties], None]
) -> None:
    caplog.set_level(logging.DEBUG)
    for properties in doors(secured, secured.source).values():
        connect(properties | {"debug": "security,broker"})
    for properties in doors(secured, secured.source, WRONG).values():
        with pytest.raises((NotAuthorized, ConfigError)) as caught:
            connect(properties | {"debug": "security,broker"})
        look_for_secrets(secured, "".join(traceback.format_exception(caught.value)) + repr(caught.value), "an error")
    look_for_secrets(secured, caplog.text, "a log")


@pytest.mark.core
def test_no_run_leaves_a_secret_behind(secured: Secured, tmp_path: Path, topic_name: str) -> None:
    """A slot and the commands, with right secrets and with wrong ones."""
    right, wrong = doors(secured, secured.destination), doors(secured, secured.destination, WRONG)
    link = link_between(secured, tmp_path, topic_name, doors(secured, secured.source)["TLS"], right["OAUTHBEARER"])
    link.publish()
    slot = link.start_slot()
    produce(link, topic_name, 100)
    link.until_copied()
    processes = [psutil.Process(slot.pid), *psutil.Process(slot.pid).children(recursive=True)]
    for process in processes:
        look_for_secrets(secured, " ".join(process.cmdline()), "a command line")
        look_for_secrets(secured, repr(process.environ()), "an environment")
    link.kill(slot)
    for name in ("PLAIN", "OAUTHBEARER", "TLS"):
        link.destination_properties = wrong[name]
        link.start_slot().wait(60)  # it cannot begin, and says why
    said = (tmp_path / "slots.log").read_text()
    assert "LoginRejected" in said
    look_for_secrets(secured, said, "a slot's log")

    for properties in (right, wrong):
        for command in ("plan", "status"):
            look_for_secrets(secured, run_command(tmp_path, link.name, command, properties), f"what {command} says")
    for kind in (naming.plan_topic, naming.map_topic, naming.reports_topic, naming.losses_topic):
        look_for_secrets(secured, raw_content(secured.destination, kind(link.name)), kind.__name__)


def run_command(folder: Path, link: str, command: str, doors_: dict[str, Properties]) -> str:
    path = folder / "links.yaml"
    clusters = {"a": doors_["SCRAM-SHA-256"], "b": doors_["OAUTHBEARER"]}
    settings = {"source": "a", "destination": "b", "naming": {"policy": "prefix", "prefix": "x."}}
    path.write_text(yaml.safe_dump({"clusters": clusters, "links": {link: settings}}))
    done = subprocess.run(
        [Path(sys.executable).with_name("strait"), command, "--json", "--config", str(path), "--link", link],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout + done.stderr


def raw_content(cluster: Cluster, topic: str) -> str:
    """Every key and value, as far as they are text."""
    (end,) = ends(cluster, topic, 1)
    consumer = Consumer(cluster.client_properties | {"group.id": "grep", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = []
    try:
        while end:
            message = consumer.poll(60)
            assert message is not None, f"{topic} does not come to its end"
            if message.error() is not None:
                break
            found.append(repr(message.key()) + repr(message.value()))
    finally:
        consumer.close()
    return "\n".join(found)
