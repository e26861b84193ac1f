"""Properties of Kafka's Java clients as librdkafka's. No secret is taken over: a reference to a file replaces it.
Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from strait.config.client_properties import PROTOCOLS
from strait.importing.draft import PROVIDED, Flow, Given, Weight, secures

_SAME = ("security.protocol", "client.id", "client.rack")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_JAAS_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;]+))""")
_DIRECTORY = re.compile(r"\$\{directory:[^:}]+:[^:/}]+\}")


@dataclass(slots=True)
class Client:
    """The clients of one end of a link."""

    flow: Flow
    cluster: str
    given: Mapping[str, Given]

    def leave(self, given: Given, why: str, weight: Weight = Weight.FIRST) -> None:
        """Record why a property is not in the cluster's block."""
        self.flow.leave(given, why, weight, "clusters", self.cluster)

    def put(self, key: str, value: str, note: str = "") -> None:
        """Set a property of the cluster. The value that an earlier link has set is kept; a value that a config provider
        holds is treated as a secret."""
        if not note and PROVIDED.search(value) and not _DIRECTORY.fullmatch(value):
            self.put_secret(key, Given(key, key, value), value)
            return
        before = self.flow.draft.clusters[self.cluster].setdefault(key, value)
        if note and before == value:
            self.flow.draft.note(note, "clusters", self.cluster, key)

    def put_secret(self, key: str, given: Given, value: str) -> None:
        """Set a reference to the file that is to hold the secret."""
        if _DIRECTORY.fullmatch(value):
            self.put(key, value)
            return
        was = f" It was {value}." if PROVIDED.fullmatch(value) else ""
        self.put(
            key,
            self.flow.draft.secret(self.cluster, key),
            f"Put the secret of `{given.key}` into this file, {self.flow.draft.secrets_dir}/{self.cluster}.{key}.{was}",
        )


@dataclass(frozen=True, slots=True)
class ClientRow:
    """``take`` gets the clients and the property."""

    names: tuple[str, ...]
    ours: str
    take: Callable[[Client, Given], None]


def put_clients(flow: Flow) -> None:
    """Translate the properties of the clients of both ends. A cluster can be an end of several flows: the properties of
    the first apply, and those of others that differ are recorded as untranslated. The originals are compared, since
    references to different secrets are equal."""
    for end, cluster in (("source", flow.source), ("destination", flow.destination)):
        given = {name: each for (where, name), each in flow.clients.items() if where == end}
        _leave_unused(flow, cluster, given)
        for name, each in [*given.items()]:
            if secures(name) or name in _SAME:
                before = flow.draft.connections.setdefault((cluster, name), each)
                if before.value != each.value:
                    flow.leave_other(cluster, before, name, each)
                    del given[name]
        flow.draft.clusters.setdefault(cluster, {})
        client = Client(flow, cluster, given)
        for name, each in given.items():
            rest = _leave_security if name.startswith(("sasl.", "ssl.")) else _leave_tuning
            next((one.take for one in CLIENT_ROWS if name in one.names), rest)(client, each)


def _leave_unused(flow: Flow, cluster: str, given: dict[str, Given]) -> None:
    """Remove the logins and certificates that clients with this protocol do not use; a links file must not have them.
    Nothing is removed if the protocol is not given, or a provider holds it."""
    protocol = given["security.protocol"].value.upper() if "security.protocol" in given else ""
    if protocol not in PROTOCOLS:
        return
    for name, each in [*given.items()]:
        used = "SSL" if name.startswith("ssl.") else "SASL" if name.startswith("sasl.") else protocol
        if used not in (protocol, *protocol.split("_")):
            why = f"needless: cluster {cluster} has `security.protocol` {protocol}"
            flow.leave(each, why, Weight.NEEDLESS)
            del given[name]


def _same(client: Client, given: Given) -> None:
    if given.value:
        client.put(given.name, given.value)


def _servers(client: Client, given: Given) -> None:
    client.put(given.name, ",".join(given.items))


def _mechanism(client: Client, given: Given) -> None:
    if given.value in _MECHANISMS:
        client.put(given.name, given.value)
    else:
        also = "; for Amazon MSK set OAUTHBEARER and `sasl.oauthbearer.method: msk_iam`"
        client.leave(given, f"is none of {', '.join(_MECHANISMS)}{also if given.value == 'AWS_MSK_IAM' else ''}")


def _jaas(client: Client, given: Given) -> None:
    """Translate `…LoginModule required username="…" password="…";`, or OAuth's clientId, clientSecret and scope."""
    if PROVIDED.fullmatch(given.value):
        client.leave(given, "a provider holds it: set `sasl.username` and `sasl.password` of the cluster by hand")
        return
    options = {found[1]: next(filter(None, found.groups()[1:]), "") for found in _JAAS_OPTION.finditer(given.value)}
    plain = {"username": "sasl.username", "clientId": "sasl.oauthbearer.client.id", "scope": "sasl.oauthbearer.scope"}
    secret = {"password": "sasl.password", "clientSecret": "sasl.oauthbearer.client.secret"}
    for option, value in options.items():
        if option in plain:
            client.put(plain[option], value)
        elif option in secret:
            client.put_secret(secret[option], given, value)
    unknown = sorted(options.keys() - plain.keys() - secret.keys())
    if unknown or not options:
        client.leave(given, f"cannot be translated as a whole: {', '.join(unknown) or 'it has no options'}")


def _endpoint(client: Client, given: Given) -> None:
    client.put("sasl.oauthbearer.method", "oidc")
    client.put("sasl.oauthbearer.token.endpoint.url", given.value)


def _algorithm(client: Client, given: Given) -> None:
    client.put("ssl.endpoint.identification.algorithm", given.value or "none")


def _keystore(client: Client, given: Given) -> None:
    kind = _kind(client, "ssl.keystore.type", given.value)
    if kind == "PKCS12":
        client.put("ssl.keystore.location", given.value)
    elif kind == "PEM":
        client.put("ssl.certificate.location", given.value)
        client.put("ssl.key.location", given.value)
    else:
        client.leave(given, "is a JKS: convert it to PKCS#12 with keytool and set `ssl.keystore.location`")


def _keystore_password(client: Client, given: Given) -> None:
    location = client.given.get("ssl.keystore.location")
    if location is not None and _kind(client, "ssl.keystore.type", location.value) == "PKCS12":
        client.put_secret("ssl.keystore.password", given, given.value)
    else:
        client.leave(given, "belongs to a keystore that is not PKCS#12")


def _key_password(client: Client, given: Given) -> None:
    location = client.given.get("ssl.keystore.location")
    is_pem = location is not None and _kind(client, "ssl.keystore.type", location.value) == "PEM"
    if is_pem or "ssl.keystore.key" in client.given:
        client.put_secret("ssl.key.password", given, given.value)
    else:
        client.leave(given, _NOT_PEM, Weight.NEEDLESS)


def _truststore(client: Client, given: Given) -> None:
    if _kind(client, "ssl.truststore.type", given.value) == "PEM":
        client.put("ssl.ca.location", given.value)
    else:
        client.leave(given, "export its certificates as PEM with keytool and set `ssl.ca.location` of the cluster")


def _kind(client: Client, key: str, location: str) -> str:
    said = client.given.get(key)
    by_name = "PKCS12" if location.endswith((".p12", ".pfx")) else "PEM" if location.endswith(".pem") else "JKS"
    return by_name if said is None else said.value.upper()


def _pem(key: str) -> Callable[[Client, Given], None]:
    return lambda client, given: client.put(key, given.value)


def _secret(key: str) -> Callable[[Client, Given], None]:
    return lambda client, given: client.put_secret(key, given, given.value)


def _start(client: Client, given: Given) -> None:
    client.flow.put("latest" if given.value == "latest" else "earliest", "start")


def _isolation(client: Client, given: Given) -> None:
    if given.value != "read_committed":
        client.leave(given, "aborted records are never copied", Weight.DIFFERS)


def _interceptors(client: Client, given: Given) -> None:
    if given.items:
        client.leave(given, _INTERCEPTORS)


def _leave(why: str, weight: Weight = Weight.NEEDLESS) -> Callable[[Client, Given], None]:
    return lambda client, given: client.leave(given, why, weight)


_TUNING = "tuning of Java's clients; batches are passed on as they are, and the engine sizes its requests itself"
_SECURITY = "secures connections in a way that has no counterpart; docs/reference/cluster-properties.md lists what has"
_COMPRESSION = "batches keep their producer's codec; `compression` of a rule is for batches that are rebuilt or merged"
_INTERCEPTORS = "interceptors can change records: own code cannot be taken over, write a `transform`"
_NOT_PEM = "needless: a PKCS#12 has one password, that of the keystore"
_leave_tuning = _leave(_TUNING)
_leave_security = _leave(_SECURITY, Weight.FIRST)

CLIENT_ROWS: tuple[ClientRow, ...] = (
    ClientRow(("bootstrap.servers",), "the same", _servers),
    ClientRow(_SAME, "the same", _same),
    ClientRow(("sasl.mechanism",), "the same, for " + ", ".join(f"`{each}`" for each in _MECHANISMS), _mechanism),
    ClientRow(
        ("sasl.jaas.config",),
        "`sasl.username` and a reference for `sasl.password`; for OAuth `sasl.oauthbearer.client.id`, "
        "`sasl.oauthbearer.scope` and a reference for `sasl.oauthbearer.client.secret`",
        _jaas,
    ),
    ClientRow(
        ("sasl.oauthbearer.token.endpoint.url",),
        "the same, with `sasl.oauthbearer.method: oidc`",
        _endpoint,
    ),
    ClientRow(
        ("sasl.login.callback.handler.class", "sasl.client.callback.handler.class"),
        "– tokens are fetched by the client credentials grant; own handlers cannot be taken over",
        _leave("tokens are fetched by the client credentials grant; own handlers cannot be taken over", Weight.FIRST),
    ),
    ClientRow(("ssl.endpoint.identification.algorithm",), "the same; `none` where it is empty", _algorithm),
    ClientRow(
        ("ssl.keystore.location",),
        "the same for PKCS#12, `ssl.certificate.location` and `ssl.key.location` for PEM; a JKS must be converted",
        _keystore,
    ),
    ClientRow(("ssl.keystore.password",), "a reference, for PKCS#12", _keystore_password),
    ClientRow(("ssl.key.password",), f"a reference, for a key in PEM; {_NOT_PEM}", _key_password),
    ClientRow(("ssl.keystore.certificate.chain",), "`ssl.certificate.pem`", _pem("ssl.certificate.pem")),
    ClientRow(("ssl.keystore.key",), "`ssl.key.pem`, as a reference", _secret("ssl.key.pem")),
    ClientRow(("ssl.truststore.location",), "`ssl.ca.location` for PEM; others must be exported as PEM", _truststore),
    ClientRow(("ssl.truststore.certificates",), "`ssl.ca.pem`", _pem("ssl.ca.pem")),
    ClientRow(
        ("ssl.truststore.password",),
        "needless: certificates to trust are no secret",
        _leave("needless: certificates to trust are no secret"),
    ),
    ClientRow(("ssl.truststore.type", "ssl.keystore.type"), "read for the stores above", lambda client, given: None),
    ClientRow(("auto.offset.reset",), "`start` of the link", _start),
    ClientRow(("isolation.level",), "needless: aborted records are never copied", _isolation),
    ClientRow(("compression.type",), f"– {_COMPRESSION}", _leave(_COMPRESSION, Weight.DIFFERS)),
    ClientRow(("interceptor.classes",), f"– {_INTERCEPTORS}", _interceptors),
    ClientRow(
        (
            "group.id",
            "enable.auto.commit",
            "key.deserializer",
            "value.deserializer",
            "key.serializer",
            "value.serializer",
        ),
        "needless: bytes are copied, and positions follow from the destination",
        _leave("needless: bytes are copied, and positions follow from the destination"),
    ),
    ClientRow(
        ("enable.idempotence", "acks", "retries", "max.in.flight.requests.per.connection"),
        "needless: each record is written once, in order, by all replicas in sync",
        _leave("needless: each record is written once, in order, by all replicas in sync"),
    ),
    ClientRow(("ssl.…", "sasl.…"), f"– {_SECURITY}", _leave_security),
    ClientRow(("any other",), f"– {_TUNING}", _leave_tuning),
)
