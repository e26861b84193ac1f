"""Authorities, certificates, keys and passwords replaced under a slot that runs."""

from pathlib import Path

import pytest

from strait.errors import StraitError
from strait.kafka.admin import Admin
from strait.state.reader import StateReader
from strait.state.report_records import Report
from strait.state.topics import ensure_state_topics
from strait.state.writer import StateWriter
from support.fixtures.waiting import eventually
from support.model.reports import plain_run
from support.security.pki import Authority
from support.security.secured import PASSWORD, Secured, link_between, produce, set_scram_password

pytestmark = pytest.mark.broker
MECHANISM = "SCRAM-SHA-256"


def copied_to(report: Report | None) -> int:
    """The positions of all partitions; -1 before the first report."""
    return -1 if report is None else sum(row.position for row in report.partitions)


@pytest.mark.core
def test_copying_goes_on_after_every_secret_was_rotated(secured: Secured, tmp_path: Path, topic_name: str) -> None:
    user, password = "rotating", tmp_path / "password"
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"

    def rotate(authority: Authority, new_password: str) -> None:
        secured.authority = authority
        secured.trust.write_text(authority.pem)
        secured.show_brokers(authority.issue("broker"))
        authority.issue("ANONYMOUS").write(certificate, key)
        password.write_text(new_password + "\n")
        set_scram_password(secured.destination, user, new_password, MECHANISM)

    rotate(secured.authority, "first-Secret")
    source = secured.tls(secured.source) | {
        "ssl.certificate.location": str(certificate),
        "ssl.key.location": str(key),
    }
    destination = secured.sasl(secured.destination, MECHANISM) | {
        "sasl.username": user,
        "sasl.password": f"${{directory:{tmp_path}:password}}",
    }
    link = link_between(secured, tmp_path, topic_name, source, destination)
    link.publish()
    with link.slot_thread() as slot, link.slot_reports() as newest:
        produce(link, topic_name, 500)
        link.until_copied()

        rotate(Authority("another authority"), "second-Secret")
        secured.restart()
        produce(link, topic_name, 500)
        link.until_copied()
        eventually(lambda: copied_to(newest()) == 1000, what="a report: the writer writes")
        link.publish(stopped=True)
        eventually(lambda: not slot.is_alive(), what="the slot's end: the reader reads")
    link.assert_equal()


def test_what_a_writer_could_not_send_with_an_old_password_goes_out_with_the_new_one(
    secured: Secured, tmp_path: Path, topic_name: str
) -> None:
    link = f"link-{topic_name[-8:]}"
    (tmp_path / "password").write_text("not yet the right one")
    properties = secured.sasl(secured.destination, "PLAIN") | {"sasl.password": f"${{directory:{tmp_path}:password}}"}
    ensure_state_topics(Admin(secured.destination.client_properties, "destination"), link, 1)
    writer = StateWriter(properties, "destination", link)
    acks: list[tuple[int, StraitError | None]] = []
    for number in range(100):
        writer.write_run(plain_run(partition=number), lambda error, number=number: acks.append((number, error)))
    assert not writer.flush(2.0)
    assert acks == []

    (tmp_path / "password").write_text(PASSWORD)
    eventually(lambda: writer.poll() or len(acks) == 100, what="acknowledgements")
    assert acks == [(number, None) for number in range(100)]
    with StateReader(secured.destination.client_properties, "destination", link, follow=("map",)) as reader:
        reader.catch_up()
        assert [runs for number in range(100) for runs in reader.runs["t", number]] == [
            plain_run(partition=n) for n in range(100)
        ]
