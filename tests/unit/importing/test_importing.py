"""What Mirus and MirrorMaker 2 are told, a link is told; what cannot be told is named, and no secret comes through."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest
import yaml

from strait.config.client_properties import missing, problems
from strait.config.links import Link, LinksFile, parse
from strait.config.naming import Names
from strait.config.topics import Naming
from strait.errors import ConfigError
from strait.importing.clients import CLIENT_ROWS
from strait.importing.draft import Draft, Weight
from strait.importing.mirus import MIRUS_ROWS, translate_mirus
from strait.importing.mm2 import translate_mm2
from strait.importing.mm2_rows import MM2_ROWS
from strait.importing.naming import why_not_regex
from strait.importing.table import Row
from strait.importing.writing import as_yaml

MIRUS = {
    "name": "eu-mirror",
    "connector.class": "com.salesforce.mirus.MirusSourceConnector",
    "consumer.client.id": "mirus",
    "consumer.bootstrap.servers": "a:1",
    "destination.consumer.bootstrap.servers": "b:1",
}
MM2 = {"clusters": "a, b", "a.bootstrap.servers": "a:1", "b.bootstrap.servers": "b:1", "a->b.enabled": "true"}
CONNECTOR = {
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
SECRETS = "/etc/secrets"


def mirus(**properties: str) -> Draft:
    return translate_mirus(MIRUS | properties, link=None, secrets_dir=SECRETS)


def mm2(**properties: str) -> Draft:
    return translate_mm2(MM2 | properties, link=None, secrets_dir=SECRETS)


def file_of(draft: Draft) -> LinksFile:
    """What a person gets, read again; and that it says the same as the draft."""
    found = parse(yaml.safe_load(as_yaml(draft)), where="translated")
    assert found == draft.checked("draft")
    return found


def link_of(draft: Draft) -> Link:
    (link,) = file_of(draft).links.values()
    return link


def test_a_mirus_connector_becomes_a_link() -> None:
    draft = mirus(
        **{
            "topics.whitelist": "orders, payments",
            "topics.regex": r"metrics\..*",
            "topics.regex.list": "a.*,^b$",
            "destination.topic.name.prefix": "eu.",
            "tasks.max": "40",
            "consumer.auto.offset.reset": "latest",
            "enable.partition.matching": "true",
        }
    )
    link = link_of(draft)
    assert list(file_of(draft).links) == ["eu-mirror"]
    assert link.topics.include == ("orders", "payments")
    assert link.topics.regex == (r"metrics\..*", "a.*", "^b$")
    assert Names(link).destination("orders") == "eu.orders"
    assert (link.create_topics, link.start, link.groups["default"].max_slots) == (False, "latest", 40)
    assert file_of(draft).clusters["source"] == {"bootstrap.servers": "a:1", "client.id": "mirus"}
    assert draft.left == {}


@pytest.mark.parametrize(
    ("properties", "name"),
    [
        ({}, "orders"),
        ({"destination.topic.name.suffix": ".eu"}, "orders.eu"),
        ({"destination.topic.name.prefix": "x.", "destination.topic.name.suffix": ".y"}, "x.orders.y"),
        (
            {
                "transforms": "r",
                "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
                "transforms.r.regex": "(ord)(.*)",
                "transforms.r.replacement": r"$2-$1\$x",
            },
            "ers-ord$x",
        ),
    ],
)
def test_copies_have_the_names_that_mirus_gives_them(properties: dict[str, str], name: str) -> None:
    draft = mirus(**properties)
    assert Names(link_of(draft)).destination("orders") == name
    assert not any(key.startswith("transforms") for key in draft.left)


@pytest.mark.parametrize(
    "properties",
    [
        {"transforms": "i", "transforms.i.type": "InsertField$Value", "transforms.i.topic.field": "t"},
        {
            "transforms": "r",
            "transforms.r.type": "RegexRouter",
            "transforms.r.regex": r"\Qa\E",
            "transforms.r.replacement": "b",
        },
        {
            "transforms": "r",
            "transforms.r.type": "RegexRouter",
            "transforms.r.regex": "a",
            "transforms.r.replacement": "$3",
        },
        {
            "destination.topic.name.prefix": "x.",
            "transforms": "r",
            "transforms.r.type": "RegexRouter",
            "transforms.r.regex": "x(.*)",
            "transforms.r.replacement": "$1",
        },
    ],
)
def test_transformations_that_cannot_be_taken_over_are_named(properties: dict[str, str]) -> None:
    draft = mirus(**properties)
    assert {key for key in properties if key.startswith("transforms")} <= set(draft.left)


def test_what_mirus_leaves_to_chance_is_noted() -> None:
    text = as_yaml(mirus(**{"enable.destination.topic.checking": "false"}))
    assert "# Records keep their partition" in text
    assert "# Mirus left creation to the brokers" in text


def test_a_worker_says_where_the_destination_is() -> None:
    without = {key: value for key, value in MIRUS.items() if not key.startswith("destination.")}
    with pytest.raises(ConfigError, match="name the worker's file, too"):
        translate_mirus(without, link=None, secrets_dir=SECRETS)
    worker = {"bootstrap.servers": "b:1", "producer.security.protocol": "SSL", "offset.storage.topic": "o"}
    draft = translate_mirus(without | worker, link="mine", secrets_dir=SECRETS)
    assert file_of(draft).clusters["destination"] == {"bootstrap.servers": "b:1", "security.protocol": "SSL"}
    assert list(draft.links) == ["mine"]
    assert draft.left["offset.storage.topic"].startswith("needless")


@pytest.mark.parametrize("newer_first", [True, False])
def test_mirus_deprecated_address_of_the_destination_counts_where_there_is_no_newer_one(newer_first: bool) -> None:
    given = {name: value for name, value in MIRUS.items() if not name.startswith("destination.")}
    translate = partial(translate_mirus, link=None, secrets_dir=SECRETS)
    deprecated, newer = {"destination.bootstrap.servers": "old:1"}, {"destination.consumer.bootstrap.servers": "b:1"}
    assert file_of(translate(given | deprecated)).clusters["destination"] == {"bootstrap.servers": "old:1"}
    both = newer | deprecated if newer_first else deprecated | newer
    assert file_of(translate(given | both)).clusters["destination"] == {"bootstrap.servers": "b:1"}


def test_each_enabled_flow_of_mirror_maker_2_becomes_a_link() -> None:
    draft = translate_mm2(
        MM2
        | {
            "clusters": "a, b, c.d",
            "c.d.bootstrap.servers": "c:1",
            "topics": "shared",
            "a->b.topics": r"orders, metrics\..*, a.b",
            "a->b.topics.exclude": "tmp.*",
            "b->a.enabled": "true",
            "a->c.d.enabled": "true",
            "c.d->a.topics": "x",
            "replication.factor": "3",
            "a->b.replication.factor": "-1",
            "a.producer.acks": "1",
        },
        link=None,
        secrets_dir=SECRETS,
    )
    links = file_of(draft).links
    assert list(links) == ["a-to-b", "a-to-c-d", "b-to-a"]
    assert links["a-to-b"].topics.include == ("orders",)
    assert links["a-to-b"].topics.regex == (r"metrics\..*", "a.b")
    assert links["a-to-b"].topics.exclude == ("tmp.*",)
    assert links["b-to-a"].topics.include == ("shared",)
    assert (links["a-to-b"].replication_factor, links["b-to-a"].replication_factor) == (None, 3)
    assert Names(links["b-to-a"]).destination("orders") == "b.orders"
    assert Names(links["a-to-c-d"]).came_from_destination("c.d.orders") is False  # as with MirrorMaker 2, see below
    assert draft.left["c.d->a.topics"] == "the flow is not enabled"


def test_what_mirror_maker_2_does_unasked_is_in_the_file() -> None:
    link = link_of(mm2())
    assert link.topics.regex == (".*",)
    assert link.topics.exclude == (r".*\.replica",)
    assert (link.replication_factor, link.configs.sync, link.acls.sync) == (2, True, True)
    assert (link.heartbeats.enabled, link.consumer_groups.sync) == (True, False)
    assert link.naming.policy == "alias"
    assert as_yaml(mm2()).count("# MirrorMaker 2's default") == 7


def test_what_mirror_maker_2_is_told_is_in_the_file() -> None:
    link = link_of(
        mm2(
            **{
                "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
                "sync.topic.configs.enabled": "false",
                "sync.topic.acls.enabled": "false",
                "config.properties.exclude": "a,b",
                "use.defaults.from": "source",
                "emit.heartbeats.enabled": "false",
                "emit.heartbeats.interval.seconds": "7",
                "a->b.consumer.auto.offset.reset": "latest",
                "tasks.max": "5",
            }
        )
    )
    assert link.naming.policy == "identity"
    assert (link.configs.sync, link.acls.sync, link.heartbeats.enabled) == (False, False, False)
    assert (link.configs.exclude, link.configs.defaults_from) == (("a", "b"), "source")
    assert (link.heartbeats.interval_seconds, link.start, link.groups["default"].max_slots) == (7, "latest", 5)


def test_consumer_groups_of_mirror_maker_2_are_those_of_the_link() -> None:
    draft = mm2(
        **{
            "groups": "billing-.*, audit",
            "groups.exclude": "console-consumer-.*,tmp(?",
            "sync.group.offsets.enabled": "true",
            "sync.group.offsets.interval.seconds": "60",
            "emit.checkpoints.enabled": "true",
            "emit.checkpoints.interval.seconds": "10",
            "checkpoints.topic.replication.factor": "3",
        }
    )
    groups = link_of(draft).consumer_groups
    assert (groups.include, groups.exclude) == (("billing-.*", "audit"), ("console-consumer-.*",))
    assert (groups.sync, groups.interval_seconds, groups.mm2_checkpoints) == (True, 60, True)
    assert set(draft.left) == {
        "groups.exclude: tmp(?",
        "emit.checkpoints.interval.seconds",
        "checkpoints.topic.replication.factor",
    }


@pytest.mark.parametrize("said", [{"sync.group.offsets.enabled": "false"}, {}], ids=["off", "by default"])
def test_checkpoints_of_mirror_maker_2_without_its_synchronization_are_said_not_to_be_written(
    said: dict[str, str],
) -> None:
    draft = mm2(**{"emit.checkpoints.enabled": "true"} | said)
    assert link_of(draft).consumer_groups.sync is False
    assert not link_of(draft).consumer_groups.mm2_checkpoints
    assert "# checkpoints are written with `sync` alone" in as_yaml(draft)


def test_a_connector_of_mirror_maker_2_is_translated_like_a_flow() -> None:
    properties = CONNECTOR | {
        "clusters": "a,b",
        "replication.policy.separator": "_",
        "topics": "t",
        "producer.override.linger.ms": "5",
    }
    draft = translate_mm2(properties, link="mine", secrets_dir=SECRETS)
    assert Names(link_of(draft)).destination("t") == "a_t"
    assert list(draft.links) == ["mine"]
    assert "tuning" in draft.left["producer.override.linger.ms"]


def test_a_policy_of_somebodys_own_is_left_and_marked_where_names_are_to_be_corrected() -> None:
    draft = mm2(
        **{"replication.policy.class": "com.example.OurPolicy", "mirrors": "a->b", "auto.offset.reset": "latest"}
    )
    assert link_of(draft).naming.policy == "alias"
    assert "    # OurPolicy cannot be taken over: correct this to the names it makes.\n    naming:" in as_yaml(draft)
    assert set(draft.left) == {"replication.policy.class", "auto.offset.reset"}


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        (MM2 | {"a->b.enabled": "false"}, "no flow is enabled"),
        ({"topics": "x"}, "neither `clusters` nor `source.cluster.alias`"),
        (CONNECTOR | {"connector.class": "x.MirrorCheckpointConnector"}, "name the file of the MirrorSourceConnector"),
        ({key: value for key, value in MM2.items() if not key.startswith("b.")}, "no `bootstrap.servers` of cluster b"),
    ],
)
def test_a_file_that_makes_no_link_is_an_error(properties: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        translate_mm2(properties, link=None, secrets_dir=SECRETS)


@pytest.mark.parametrize(
    ("source", "separator", "name"),
    [
        ("", {"replication.policy.separator": ""}, "orders"),
        ("a", {"replication.policy.separator": ""}, "aorders"),
        ("", {"replication.policy.separator": "_"}, "_orders"),
        ("", {}, ".orders"),
        ("a", {}, "a.orders"),
    ],
)
@pytest.mark.parametrize("target", ["", "b"])
@pytest.mark.parametrize("policy", ["", "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"])
def test_a_connector_with_an_empty_alias_or_separator_keeps_its_names(
    source: str, separator: dict[str, str], name: str, target: str, policy: str
) -> None:
    aliases = {"source.cluster.alias": source, "target.cluster.alias": target}
    properties = CONNECTOR | aliases | separator | ({"replication.policy.class": policy} if policy else {})
    draft = translate_mm2(properties, link=None, secrets_dir=SECRETS)
    link = link_of(draft)
    assert Names(link).destination("orders") == name
    assert (link.source, link.destination) == (source or "source", target or "target")
    assert list(draft.links) == [f"{link.source}-to-{link.destination}"]
    assert (link.naming == Naming()) == (name == "orders")


def test_a_router_of_a_connector_that_keeps_names_is_the_naming() -> None:
    router = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": "(.*)"}
    empty = {"source.cluster.alias": "", "replication.policy.separator": "", "transforms.r.replacement": "x-$1"}
    draft = translate_mm2(CONNECTOR | router | empty, link=None, secrets_dir=SECRETS)
    assert Names(link_of(draft)).destination("orders") == "x-orders"
    assert draft.left == {}


HELD_BY_FILE = "${file:/opt/t.properties:topics}"


@pytest.mark.parametrize(
    ("pattern", "usable"),
    [
        (HELD_BY_FILE, False),
        ("eu[.]${env:TOPICS}", False),
        ("${secrets-1:t}.*", False),
        ("[a-z[0-9]]+", False),
        ("[^a[b]]", False),
        ("x[]a[b]]", False),
        ("[[:alpha:]]+", False),
        (r"[a\\[b]]", False),
        (r"[a-z\[0-9]+", True),
        (r"\[[ab]", True),
        ("[ab][cd]", True),
        ("[]a][b]", True),
        ("orders$", True),
        ("a{2}", True),
    ],
)
def test_an_expression_is_left_if_it_matches_other_names_here_than_in_java(pattern: str, usable: bool) -> None:
    assert (why_not_regex(pattern) is None) == usable
    draft = mm2(topics=pattern)
    assert ((link_of(draft).topics.regex or (None,))[0] == pattern) == usable
    assert list(draft.of(Weight.FIRST)) == ([] if usable else [f"topics: {pattern}"])


def test_names_that_a_provider_holds_are_to_be_written_first() -> None:
    router = {"transforms": "r", "transforms.r.type": "RegexRouter", "transforms.r.regex": "(.*)"}
    draft = mirus(**router, **{"topics.whitelist": f"a,{HELD_BY_FILE}", "transforms.r.replacement": HELD_BY_FILE})
    assert link_of(draft).topics.include == ("a",)
    assert link_of(draft).naming == Naming()
    assert {"topics.whitelist", "transforms.r.replacement"} <= set(draft.of(Weight.FIRST))


READER = "auto.offset.reset"


@pytest.mark.parametrize(
    ("draft", "start"),
    [
        (mirus(**{f"consumer.{READER}": "earliest", f"destination.consumer.{READER}": "latest"}), "earliest"),
        (mirus(**{f"destination.consumer.{READER}": "latest"}), "earliest"),
        (mirus(**{f"consumer.{READER}": "latest", f"destination.consumer.{READER}": "earliest"}), "latest"),
        (mm2(**{f"b.{READER}": "latest"}), "earliest"),
        (mm2(**{f"a.{READER}": "latest"}), "earliest"),
        (mm2(**{f"b.consumer.{READER}": "latest"}), "earliest"),
        (mm2(**{f"a.admin.{READER}": "latest", f"a.consumer.{READER}": "earliest"}), "earliest"),
        (mm2(**{f"a.{READER}": "earliest", f"a.consumer.{READER}": "latest"}), "latest"),
        (mm2(**{f"consumer.{READER}": "latest"}), "earliest"),
        (mm2(**{f"source.consumer.{READER}": "latest"}), "earliest"),
        (mm2(**{f"a->b.consumer.{READER}": "latest"}), "latest"),
        (translate_mm2(CONNECTOR | {f"consumer.{READER}": "latest"}, link=None, secrets_dir=SECRETS), "latest"),
    ],
)
def test_the_start_offset_is_that_of_the_consumer_that_reads_the_records(draft: Draft, start: str) -> None:
    assert link_of(draft).start == start
    assert not draft.of(Weight.FIRST)


@pytest.mark.parametrize(
    ("draft", "read"),
    [
        (mm2(**{"a.consumer.isolation.level": "read_uncommitted"}), True),
        (mm2(**{"b.isolation.level": "read_uncommitted"}), False),
        (mm2(**{"consumer.isolation.level": "read_uncommitted"}), False),
        (mirus(**{"consumer.isolation.level": "read_uncommitted"}), True),
        (mirus(**{"destination.consumer.isolation.level": "read_uncommitted"}), False),
    ],
)
def test_aborted_records_differ_where_the_consumer_of_the_records_reads_them(draft: Draft, read: bool) -> None:
    assert bool(draft.of(Weight.DIFFERS)) == read
    assert len(draft.left) == 1


def test_a_flow_that_synchronizes_groups_has_the_defaults_of_mirror_maker_2() -> None:
    draft = mm2(**{"sync.group.offsets.enabled": "true"})
    groups = link_of(draft).consumer_groups
    assert groups.exclude == ("console-consumer-.*", "connect-.*", "__.*")
    assert groups.mm2_checkpoints
    assert as_yaml(draft).count("# MirrorMaker 2's default") == 8  # with two for groups, without that of `sync`
    told = mm2(**{"sync.group.offsets.enabled": "true", "emit.checkpoints.enabled": "false", "groups.blacklist": "x"})
    assert not link_of(told).consumer_groups.mm2_checkpoints
    assert link_of(told).consumer_groups.exclude == ("x",)


def test_the_former_name_of_the_excluded_configurations_is_read() -> None:
    draft = mm2(**{"config.properties.blacklist": "a,b"})
    assert link_of(draft).configs.exclude == ("a", "b")
    assert draft.left == {}


@pytest.mark.parametrize(
    ("draft", "clusters"),
    [
        (mm2(**{"a.consumer.client.rack": "r1"}), {"a": "r1"}),
        (mm2(**{"a->b.consumer.client.rack": "r1"}), {"a": "r1"}),
        (mm2(**{"a.client.rack": "r1", "b.producer.client.rack": "r2"}), {}),
        (mirus(**{"consumer.client.rack": "r1", "destination.consumer.client.rack": "r2"}), {"source": "r1"}),
    ],
)
def test_the_rack_of_the_consumer_of_the_records_is_that_of_the_source(draft: Draft, clusters: dict[str, str]) -> None:
    found = {name: each["client.rack"] for name, each in file_of(draft).clusters.items() if "client.rack" in each}
    assert found == clusters


@pytest.mark.parametrize(
    ("key", "weight"),
    [
        ("b.producer.compression.type", Weight.DIFFERS),
        ("a->b.producer.compression.type", Weight.DIFFERS),
        ("b.compression.type", Weight.NEEDLESS),
        ("a.consumer.interceptor.classes", Weight.FIRST),
        ("b.producer.interceptor.classes", Weight.FIRST),
        ("a->b.producer.interceptor.classes", Weight.FIRST),
        ("b.admin.interceptor.classes", Weight.NEEDLESS),
    ],
)
def test_what_changes_records_or_batches_is_reported(key: str, weight: Weight) -> None:
    assert list(mm2(**{key: "zstd"}).of(weight)) == [key]


@pytest.mark.parametrize("client", ["consumer", "producer"])
def test_interceptors_of_mirus_are_reported_first_if_there_are_any(client: str) -> None:
    key = f"{client}.interceptor.classes"
    assert list(mirus(**{key: "com.example.Mask"}).of(Weight.FIRST)) == [key]
    assert mirus(**{key: ""}).left == {}


SECRET = "hunter2-and-more"
JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required"


@pytest.mark.parametrize(
    ("properties", "cluster"),
    [
        (
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": f'{JAAS} username="u" password="{SECRET}";'},
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "u",
                "sasl.password": "${directory:/etc/secrets:a.sasl.password}",
            },
        ),
        (
            {
                "sasl.jaas.config": f"OAuthBearerLoginModule required clientId='c' clientSecret='{SECRET}' scope='s';",
                "sasl.oauthbearer.token.endpoint.url": "https://t",
            },
            {
                "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": "${directory:/etc/secrets:a.sasl.oauthbearer.client.secret}",
                "sasl.oauthbearer.scope": "s",
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": "https://t",
            },
        ),
        (
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": SECRET, "ssl.truststore.location": "/t.pem"},
            {
                "ssl.keystore.location": "/k.p12",
                "ssl.keystore.password": "${directory:/etc/secrets:a.ssl.keystore.password}",
                "ssl.ca.location": "/t.pem",
            },
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/k", "ssl.key.password": "${directory:/run:key}"},
            {"ssl.certificate.location": "/k", "ssl.key.location": "/k", "ssl.key.password": "${directory:/run:key}"},
        ),
        (
            {
                "ssl.keystore.key": SECRET,
                "ssl.endpoint.identification.algorithm": "",
                "security.protocol": "${file:/f:p}",
            },
            {
                "ssl.key.pem": "${directory:/etc/secrets:a.ssl.key.pem}",
                "ssl.endpoint.identification.algorithm": "none",
                "security.protocol": "${directory:/etc/secrets:a.security.protocol}",
            },
        ),
        ({"ssl.keystore.location": "/k.jks", "ssl.keystore.password": SECRET, "ssl.truststore.password": SECRET}, {}),
        (
            {
                "sasl.mechanism": "AWS_MSK_IAM",
                "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
            },
            {},
        ),
        ({"ssl.protocol": "TLSv1.3", "sasl.client.callback.handler.class": "x"}, {}),
        ({"sasl.jaas.config": f"Krb5LoginModule required keyTab='{SECRET}';"}, {}),
    ],
)
def test_credentials_become_librdkafkas_and_secrets_references(
    properties: dict[str, str], cluster: dict[str, str]
) -> None:
    draft = mm2(**{f"a.{key}": value for key, value in properties.items()})
    found = dict(file_of(draft).clusters["a"])
    assert found.pop("bootstrap.servers") == "a:1"
    assert found == cluster
    assert SECRET not in as_yaml(draft)
    assert SECRET not in str(draft.left)
    assert cluster or draft.left


LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{JAAS} username="all" password="{SECRET}";',
    "ssl.truststore.location": "/t.pem",
}


def test_a_login_of_all_clusters_secures_those_that_have_none_of_their_own() -> None:
    draft = mm2(**LOGIN, **{"b.sasl.jaas.config": f'{JAAS} username="b" password="{SECRET}";'})
    clusters = file_of(draft).clusters
    for cluster, user in (("a", "all"), ("b", "b")):
        assert clusters[cluster]["security.protocol"] == "SASL_SSL"
        assert clusters[cluster]["ssl.ca.location"] == "/t.pem"
        assert clusters[cluster]["sasl.username"] == user
        assert clusters[cluster]["sasl.password"] == f"${{directory:/etc/secrets:{cluster}.sasl.password}}"
    assert draft.left == {}
    assert SECRET not in as_yaml(draft)


def test_a_property_of_all_clusters_that_each_replaces_is_needless() -> None:
    draft = mm2(**{"security.protocol": "SSL", "a.security.protocol": "PLAINTEXT", "b.security.protocol": "PLAINTEXT"})
    assert draft.of(Weight.NEEDLESS) == draft.left == {"security.protocol": "each cluster has its own"}


@pytest.mark.parametrize("key", LOGIN)
def test_a_login_that_belongs_to_no_cluster_is_to_be_corrected_first(key: str) -> None:
    of_flow = mm2(**{f"a->b.{key}": LOGIN[key]})
    of_connector = translate_mm2(CONNECTOR | {key: LOGIN[key]}, link=None, secrets_dir=SECRETS)
    assert list(of_flow.of(Weight.FIRST)) == [f"a->b.{key}"]
    assert list(of_connector.of(Weight.FIRST)) == [key]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_second_login_of_a_cluster_is_to_be_corrected_first(swapped: bool) -> None:
    logins = {
        f"{cluster}.{client}.sasl.jaas.config": f'{JAAS} username="{cluster}-{client}" password="{SECRET}{client}";'
        for cluster in ("a", "b")
        for client in ("producer", "consumer")
    }
    draft = mm2(**{"b->a.enabled": "true"} | logins | ({"clusters": "b, a"} if swapped else {}))
    first, second = ("b", "a") if swapped else ("a", "b")
    assert {name: each["sasl.username"] for name, each in file_of(draft).clusters.items()} == {
        first: f"{first}-consumer",
        second: f"{second}-producer",
    }
    why = "differs from `{}`; here all clients of a cluster have the same properties"
    assert draft.of(Weight.FIRST) == {
        f"{first}.producer.sasl.jaas.config": why.format(f"{first}.consumer.sasl.jaas.config"),
        f"{second}.consumer.sasl.jaas.config": why.format(f"{second}.producer.sasl.jaas.config"),
    }
    assert as_yaml(draft).count("# FIRST: `") == 2
    assert SECRET not in as_yaml(draft)


def test_secrets_of_a_cluster_are_compared_though_their_references_are_equal() -> None:
    keys = {f"a.{client}.ssl.keystore.password": f"{SECRET}{client}" for client in ("producer", "consumer")}
    draft = mm2(**{"b->a.enabled": "true", "a.ssl.keystore.location": "/k.p12"} | keys)
    assert list(draft.of(Weight.FIRST)) == ["a.producer.ssl.keystore.password"]


def test_a_cluster_with_one_login_has_it_in_all_flows() -> None:
    draft = mm2(**{"b->a.enabled": "true"}, **{f"a.{key}": value for key, value in LOGIN.items()})
    assert draft.left == {}


@pytest.mark.parametrize(
    ("keystore", "kept"),
    [
        ({"ssl.keystore.location": "/k.p12", "ssl.keystore.password": SECRET}, False),
        ({"ssl.keystore.location": "/k", "ssl.keystore.type": "pkcs12", "ssl.keystore.password": SECRET}, False),
        ({"ssl.keystore.location": "/k.jks"}, False),
        ({}, False),
        ({"ssl.keystore.location": "/k.pem"}, True),
        ({"ssl.keystore.location": "/k", "ssl.keystore.type": "PEM"}, True),
        ({"ssl.keystore.key": "-----BEGIN", "ssl.keystore.certificate.chain": "-----BEGIN"}, True),
    ],
)
def test_the_password_of_a_key_is_for_a_key_in_pem(keystore: dict[str, str], kept: bool) -> None:
    given = {"security.protocol": "SSL", "ssl.key.password": SECRET} | keystore
    draft = mm2(**{f"a.{key}": value for key, value in given.items()})
    properties = file_of(draft).clusters["a"]
    assert ("ssl.key.password" in properties) == kept
    assert ("a.ssl.key.password" in draft.of(Weight.NEEDLESS)) == (not kept)
    assert [*problems(properties), *missing(properties)] == []


@pytest.mark.parametrize(
    ("protocol", "unused"),
    [
        ("PLAINTEXT", {"sasl.mechanism", "sasl.jaas.config", "ssl.truststore.location"}),
        ("ssl", {"sasl.mechanism", "sasl.jaas.config"}),
        ("SASL_PLAINTEXT", {"ssl.truststore.location"}),
        ("SASL_SSL", set()),
    ],
)
def test_a_cluster_gets_no_login_that_its_protocol_does_not_use(protocol: str, unused: set[str]) -> None:
    draft = mm2(**LOGIN, **{"b.security.protocol": protocol})
    clusters = file_of(draft).clusters
    assert {name: [*problems(each), *missing(each)] for name, each in clusters.items()} == {"a": [], "b": []}
    assert set(draft.of(Weight.NEEDLESS)) == set(draft.left) == unused


def test_a_connectors_own_login_of_the_producer_is_that_of_the_destination() -> None:
    draft = mirus(**{f"producer.override.{key}": value for key, value in LOGIN.items()})
    assert file_of(draft).clusters["destination"]["sasl.username"] == "all"
    assert draft.left == {}


READ = {"name", "enabled", "clusters", "mirrors", "connector.class", "source.cluster.alias", "target.cluster.alias"}
READ |= {
    f"{head}ssl.{store}.type"
    for head in ("", "consumer.", "source.cluster.", "a.")
    for store in ("keystore", "truststore")
}
CLIENTS = [name for row in CLIENT_ROWS for name in row.names]


def named(rows: Sequence[Row], *heads: str) -> list[str]:
    """A property for each name of a table, and each of a client's behind the prefixes."""
    tables = [name.replace("*", "x.y") for row in rows for name in row.names]
    return [name for name in [*tables, *(head + name for head in heads for name in CLIENTS)] if name not in READ]


@pytest.mark.parametrize(
    ("translated", "base", "names"),
    [
        (translate_mirus, MIRUS, named(MIRUS_ROWS, "", "consumer.")),
        (translate_mm2, CONNECTOR, named(MM2_ROWS, "source.cluster.")),
        (translate_mm2, MM2, ["wibble", "a.wibble", "a->b.wibble", "b->a.topics", *named([], "a.")]),
    ],
)
@pytest.mark.parametrize("value", ["zzz", "(", "-7", SECRET, "1.5"])
def test_each_property_changes_the_file_or_is_left_with_a_reason(
    translated: Callable[..., Draft], base: dict[str, str], names: list[str], value: str
) -> None:
    plain = translated(base, link=None, secrets_dir=SECRETS)
    for name in names:
        draft = translated({name: value} | base, link=None, secrets_dir=SECRETS)
        left = [why for key, why in draft.left.items() if key.startswith(name)]
        assert name in base or left or as_yaml(draft) != as_yaml(plain), name
        if name.endswith(("password", "ssl.keystore.key", "jaas.config")):
            assert SECRET not in as_yaml(draft) + str(draft.left)


def test_a_cluster_at_the_end_of_two_flows_is_noted_once() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    draft = mm2(**{"b->a.enabled": "true", "b.sasl.jaas.config": jaas})
    assert as_yaml(draft).count("# Put the secret of") == 1
