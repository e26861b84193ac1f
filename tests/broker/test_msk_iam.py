"""Tokens of AWS's own signer, at brokers that verify their signature as Amazon MSK does."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.embedded.kafka_nodes import Listener, Node
from strait.errors import NotAuthorized
from strait.kafka.admin import Admin
from strait.net.channel import Channel
from strait.net.handshake import dial
from strait.net.security import Security
from strait.tokens import sources
from support.fixtures.clusters import Clusters, forget_data
from support.fixtures.waiting import eventually
from support.kafka.jvm import compile_java
from support.security import sign_in
from support.security.pki import Authority
from support.security.secured import Properties, SecuredLink, produce, settled

pytestmark = pytest.mark.broker

SECRET = "a-secret-key-of-aws"
VALIDATOR = Path(sign_in.__file__).with_name("MskValidator.java")
SESSION_MS = 5000


class VerifyingCluster(Cluster):
    """One broker that accepts tokens signed with ``SECRET`` at its listener AWS."""

    def __init__(self, folder: Path) -> None:
        authority = Authority("an authority")
        identity = authority.issue("broker")
        (folder / "authority.pem").write_text(authority.pem)
        (folder / "broker.pem").write_text(identity.key_pem() + identity.pem)
        self._classes = folder / "classes"
        compile_java(VALIDATOR, self._classes)
        listener = Listener(
            protocol="SASL_SSL",
            properties={
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(folder / "broker.pem"),
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "oauthbearer.sasl.jaas.config": (
                    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
                ),
                "oauthbearer.sasl.server.callback.handler.class": "strait.tests.MskValidator",
                "oauthbearer.connections.max.reauth.ms": str(SESSION_MS),
            },
        )
        super().__init__(
            folder / "cluster", listeners={"AWS": listener}, jvm_options=(f"-Dstrait.tests.aws.secret={SECRET}",)
        )
        self.signed_in: Properties = {
            "bootstrap.servers": self.bootstrap_of("AWS"),
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": str(folder / "authority.pem"),
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "msk_iam",
            "sasl.oauthbearer.aws.region": "eu-central-1",
        }

    def _java(self, node: Node, heap_mib: int, flags: Sequence[str]) -> list[str]:
        *command, classpath = super()._java(node, heap_mib, flags)
        return [*command, f"{classpath}:{self._classes}"]


@pytest.fixture(scope="module")
def verifying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VerifyingCluster]:
    cluster = VerifyingCluster(tmp_path_factory.mktemp("verifying"))
    with cluster:
        yield cluster
    forget_data(cluster)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.setattr(sources, "_cache", {})


def test_a_link_signs_in_and_signs_in_again(
    verifying: VerifyingCluster, clusters: Clusters, tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[object] = []
    go_on_with = Channel.go_on_with
    monkeypatch.setattr(Channel, "go_on_with", lambda *how: (renewed.append(how), go_on_with(*how)))
    link = SecuredLink(
        name=f"link-{topic_name[-8:]}",
        source=clusters.source,
        destination=verifying,
        folder=tmp_path,
        topics={topic_name: 2},
        source_properties=clusters.source.client_properties,
        destination_properties=verifying.signed_in,
    )
    link.make_topics()
    link.publish()
    producer = Producer(clusters.source.client_properties)
    with link.slot_thread(), link.slot_reports() as newest:

        def renewed_under_load() -> bool:
            produce(link, topic_name, 100, producer)
            return len(renewed) >= 4

        eventually(renewed_under_load, what=lambda: f"sessions end: {len(renewed)} renewed, {newest()}")
        link.until_copied()
        report = eventually(lambda: settled(newest(), link.written()), what=lambda: f"the end: {newest()}")
    link.assert_equal()
    assert (report.recoveries, report.conflicts) == (2, 0), report


def test_another_secret_is_refused(verifying: VerifyingCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another secret")
    host, port = verifying.bootstrap_of("AWS").split(":")
    with pytest.raises(NotAuthorized, match="refuses the login over OAUTHBEARER"):
        dial("it", (host, int(port)), Security("it", verifying.signed_in), 30.0)
    with pytest.raises(NotAuthorized):
        Admin(verifying.signed_in, "it")
