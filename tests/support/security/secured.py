"""Two clusters behind every kind of door: TLS, mutual TLS, and each SASL mechanism over TLS; nothing without a
right."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from strait.config.app_spec import AppSpec
from strait.embedded import kafka
from strait.embedded.kafka import Cluster
from strait.embedded.kafka_nodes import Listener
from strait.engine.slot import run_slot
from strait.state.reader import StateReader
from strait.state.report_records import Report
from support.kafka import acls
from support.links.engine_link import EngineLink
from support.security import sign_in
from support.security.pki import Authority, Identity
from support.security.tokens import AUDIENCE, TokenEndpoint

SESSION_MS = 5000  # after which brokers want to know again who is there, with those of REAUTHENTICATED
REAUTHENTICATED = ("SCRAM-SHA-512", "OAUTHBEARER")
USER, PASSWORD = "co=py,er", "a-Secret-of-PLAIN"  # a name that SCRAM must escape
CLIENT, SECRET = "copier", "a-Secret-of-OAUTH"
SCRAM_PASSWORD = "a-Secret-of-SCRAM"
SUPERUSERS = ("ANONYMOUS", USER, CLIENT, "rotating")
_LOG_SETTINGS = Path(kafka.__file__).parent / "log4j2.properties"
_MODULES = "org.apache.kafka.common.security"
Properties = dict[str, str]


@dataclass
class Secured:
    """``source`` and ``destination`` are reached without a login at their first listener, as superuser."""

    folder: Path
    authority: Authority
    tokens: TokenEndpoint
    source: Cluster = field(init=False)
    destination: Cluster = field(init=False)

    def __post_init__(self) -> None:
        self.trust.write_text(self.authority.pem)
        self.tokens_trust.write_text(self.authority.pem)
        (self.folder / "decisions.properties").write_text(acls.LOG_SETTINGS)
        self.show_brokers(self.authority.issue("broker"))
        self.source, self.destination = (self._cluster(end) for end in ("source", "destination"))

    @property
    def trust(self) -> Path:
        """The authority's certificate: whom brokers and clients trust."""
        return self.folder / "authority.pem"

    @property
    def tokens_trust(self) -> Path:
        """The certificate of the authority that the token endpoint has its own from, whoever brokers have theirs from
        now."""
        return self.folder / "tokens-authority.pem"

    def restart(self) -> None:
        """Both, so that every connection is dropped and every file is read again."""
        ends = (self.source, self.destination)
        with ThreadPoolExecutor(len(ends)) as pool:
            list(pool.map(lambda cluster: cluster.stop_broker(1), ends))
            list(pool.map(lambda cluster: cluster.start_broker(1), ends))

    def show_brokers(self, identity: Identity) -> None:
        """Let brokers show this certificate, those of now at their next start."""
        (self.folder / "broker.pem").write_text(identity.key_pem() + identity.pem)

    def tls(self, cluster: Cluster, identity: Identity | None = None) -> Properties:
        """One-way, or mutual as ``identity``."""
        properties = {
            "bootstrap.servers": cluster.bootstrap_of("TLS"),
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.trust),
        }
        if identity is not None:
            properties |= {"ssl.certificate.pem": identity.pem, "ssl.key.pem": identity.key_pem()}
        return properties

    def sasl(self, cluster: Cluster, mechanism: str) -> Properties:
        """As the user that may do everything."""
        properties = {
            "bootstrap.servers": cluster.bootstrap_of("SASL"),
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": str(self.trust),
            "sasl.mechanism": mechanism,
        }
        if mechanism == "OAUTHBEARER":
            return properties | {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": CLIENT,
                "sasl.oauthbearer.client.secret": SECRET,
                "sasl.oauthbearer.token.endpoint.url": self.tokens.url,
                "https.ca.location": str(self.tokens_trust),
                "sasl.oauthbearer.scope": "copying",
                "sasl.oauthbearer.extensions": "team=data,site=here",
            }
        password = PASSWORD if mechanism == "PLAIN" else SCRAM_PASSWORD
        return properties | {"sasl.username": USER, "sasl.password": password}

    def own_tokens(self, cluster: Cluster, method: str) -> Properties:
        """As the same client as by ``oidc``, with tokens that Strait gets itself."""
        properties = self.sasl(cluster, "PLAIN") | {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": method,
            "sasl.oauthbearer.extensions": "team=data,site=here",
        }
        del properties["sasl.username"], properties["sasl.password"]
        secret = self.folder / "client-secret"
        secret.write_text(SECRET)
        command = (sys.executable, sign_in.__file__, self.tokens.url, self.tokens_trust, CLIENT, secret)
        return properties | {
            "command": {"sasl.oauthbearer.token.command": " ".join(map(str, command))},
            "file": {"sasl.oauthbearer.token.file": str(self.token_file)},
            "msk_iam": {"sasl.oauthbearer.aws.region": "eu-central-1"},
        }.get(method, {})

    @property
    def token_file(self) -> Path:
        """Where somebody else puts a token from time to time."""
        return self.folder / "token"

    def _cluster(self, end: str) -> Cluster:
        stores = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.folder / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        }
        tls = {"ssl.client.auth": "requested", "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/"}
        jwks = f"file://{self.folder / 'jwks.json'}"
        sasl = {
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "plain.sasl.jaas.config": f'{_MODULES}.plain.PlainLoginModule required "user_{USER}"="{PASSWORD}";',
            "scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            "scram-sha-512.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
            "oauthbearer.sasl.jaas.config": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;",
            "oauthbearer.sasl.server.callback.handler.class": (
                f"{_MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": jwks,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
        }
        sasl |= {f"{name.lower()}.connections.max.reauth.ms": str(SESSION_MS) for name in REAUTHENTICATED}
        return Cluster(
            self.folder / end,
            properties={
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": ";".join(f"User:{name}" for name in SUPERUSERS),
            },
            listeners={
                "TLS": Listener(protocol="SSL", properties=stores | tls),
                "SASL": Listener(protocol="SASL_SSL", properties=stores | sasl),
            },
            jvm_options=(
                f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={jwks}",
                f"-Dlog4j2.configurationFile={_LOG_SETTINGS},{self.folder / 'decisions.properties'}",
            ),
        )


@contextmanager
def secured_clusters(folder: Path) -> Iterator[Secured]:
    """Both, running, with users for SCRAM."""
    authority = Authority("an authority")
    tokens = TokenEndpoint({CLIENT: SECRET}, folder / "jwks.json", identity=authority.issue("tokens"))
    with tokens.running():
        secured = Secured(folder, authority, tokens)
        ends = (secured.source, secured.destination)
        try:
            with ThreadPoolExecutor(len(ends)) as pool:
                list(pool.map(Cluster.start, ends))
            for cluster in ends:
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                    set_scram_password(cluster, USER, SCRAM_PASSWORD, mechanism)
            yield secured
        finally:
            for cluster in ends:
                cluster.stop()


def set_scram_password(cluster: Cluster, user: str, password: str, mechanism: str) -> None:
    """Those who are logged in stay so; whoever logs in from now on needs this one."""
    how = ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")], 4096)
    change = UserScramCredentialUpsertion(user, how, password.encode())
    client = AdminClient(cluster.client_properties)
    for future in client.alter_user_scram_credentials([change], request_timeout=30).values():
        future.result()


@dataclass
class SecuredLink(EngineLink):
    """A link whose slots reach the clusters as they are told to; the test itself comes in by the first listener."""

    source_properties: Properties = field(default_factory=dict)
    destination_properties: Properties = field(default_factory=dict)

    @contextmanager
    def slot_thread(self) -> Iterator[threading.Thread]:
        """Run the slot inside the test's own process, for as long as the block: no process has to start."""
        stop = threading.Event()
        slot = threading.Thread(target=run_slot, args=(self.spec, 0, "by hand", stop.is_set))
        slot.start()
        try:
            yield slot
        finally:
            stop.set()
            slot.join(60)
            assert not slot.is_alive()

    @contextmanager
    def slot_reports(self) -> Iterator[Callable[[], Report | None]]:
        """A function that gives the slot's newest report."""
        with StateReader(self.destination.client_properties, "destination", self.name, follow=("reports",)) as state:
            state.catch_up()

            def newest() -> Report | None:
                state.poll(0.1)
                parts = [part for parts in state.reports.values() for part in parts]
                return max(parts, key=lambda part: part.at_ms, default=None)

            yield newest

    @property
    def spec(self) -> AppSpec:
        own = {"source": self.source_properties, "destination": self.destination_properties}
        return super().spec.model_copy(update=own)


def link_between(
    secured: Secured, folder: Path, topic: str, source: Properties, destination: Properties
) -> SecuredLink:
    """With its topics made and nothing planned yet."""
    link = SecuredLink(
        name=f"link-{topic[-8:]}",
        source=secured.source,
        destination=secured.destination,
        folder=folder,
        topics={topic: 2},
        source_properties=source,
        destination_properties=destination,
    )
    link.make_topics()
    return link


def produce(link: EngineLink, topic: str, records: int, producer: Producer | None = None) -> None:
    """To the source, evenly, and wait until it has them."""
    producer = producer or Producer(link.source.client_properties | {"linger.ms": 5})
    for number in range(records):
        producer.produce(topic, f"value {number}", key=f"{number}", partition=number % link.topics[topic])
    assert producer.flush(60) == 0


def settled(report: Report | None, records: int) -> Report | None:
    """The report, once it says that everything is copied."""
    if report is None or sum(row.position for row in report.partitions) < records:
        return None
    return report
