"""Mirus: the configuration of a connector, and of the worker that runs it. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from strait.errors import ConfigError
from strait.importing.clients import put_clients
from strait.importing.connect import CONNECT_ROWS, client_of, read
from strait.importing.draft import PROVIDED, Draft, Flow, Given, Weight, as_name
from strait.importing.naming import HELD, add_patterns, routing_rules
from strait.importing.table import Row, needless, no, row, translate

_DEPRECATED_SERVERS = "destination.bootstrap.servers"  # Mirus' old name of destination.consumer.bootstrap.servers
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def translate_mirus(properties: Mapping[str, str], *, link: str | None, secrets_dir: str) -> Draft:
    """Return the links file with one link. Raises ConfigError if an end has no address."""
    given = [Given(key, key, value) for key, value in properties.items()]
    draft = Draft(secrets_dir)
    flow = Flow(draft, link or as_name(properties.get("name", "mirus")), "source", "destination")
    # Properties of the connector's own clients come first: they take precedence over the worker's for all clients.
    own = ("consumer.", "destination.consumer.", "destination.bootstrap.", "producer.")
    translate(
        flow,
        MIRUS_ROWS,
        sorted(given, key=lambda each: (not each.name.startswith(own), each.key == _DEPRECATED_SERVERS)),
    )
    flow.note("Mirus says `source` and `destination` by address alone; give them the names of your clusters.")
    if not properties.get("consumer.bootstrap.servers"):
        raise ConfigError("import mirus", ["no `consumer.bootstrap.servers`"], hint="name the connector's file, too")
    if ("destination", "bootstrap.servers") not in flow.clients:
        raise ConfigError(
            "import mirus", ["no `destination.consumer.bootstrap.servers`"], hint="name the worker's file, too"
        )
    _put_names(flow)
    if flow.get("create_topics") is None:
        flow.put(False, "create_topics", note="`enable.destination.topic.checking` is true by default.")
    if properties.get("enable.partition.matching", "false").lower() != "true":
        flow.note("Records keep their partition; by Mirus' default they were spread anew by the hash of their keys.")
    put_clients(flow)
    return draft


def _put_names(flow: Flow) -> None:
    affixes = {affix: flow.names[affix].value for affix in ("prefix", "suffix") if affix in flow.names}
    affixes = {affix: value for affix, value in affixes.items() if value}
    rules = routing_rules(flow, alone=not affixes)
    if rules:
        flow.put({"policy": "rules", "rules": rules}, "naming")
    elif len(affixes) == 2:
        both = {"match": "(.*)", "replace": rf"{affixes['prefix']}\1{affixes['suffix']}"}
        flow.put({"policy": "rules", "rules": [both]}, "naming")
    elif affixes:
        ((affix, value),) = affixes.items()
        flow.put({"policy": affix, affix: value}, "naming")


def _include(flow: Flow, given: Given) -> None:
    for item in given.items:
        if PROVIDED.search(item):
            flow.leave(given, HELD, Weight.FIRST)
        else:
            flow.add([item], "topics", "include")


def _regex(flow: Flow, given: Given) -> None:
    add_patterns(flow, given, [given.value] if given.value else [], "topics", "regex")


def _regex_list(flow: Flow, given: Given) -> None:
    add_patterns(flow, given, given.items, "topics", "regex")


def _affix(flow: Flow, given: Given) -> None:
    flow.names[given.name.rpartition(".")[2]] = given


def _checking(flow: Flow, given: Given) -> None:
    if given.is_true:
        flow.put(False, "create_topics")
    else:
        flow.put(True, "create_topics", note="Mirus left creation to the brokers (`auto.create.topics.enable`).")


def _matching(flow: Flow, given: Given) -> None:
    if not given.is_true:
        flow.leave(given, "records keep their partition, always")


def _destination(flow: Flow, given: Given) -> None:
    if given.key == _DEPRECATED_SERVERS:
        given = replace(given, name="bootstrap.servers")
    client_of("destination", writes=given.key.startswith("producer."))(flow, given)


def _of_worker(flow: Flow, given: Given) -> None:
    """Use a property of the worker's own clients for the destination if nothing more specific is given. These clients
    take no part in replication."""
    flow.client("destination", given.key, given)


def _converter(flow: Flow, given: Given) -> None:
    if given.value != _BYTES:
        flow.leave(given, "records are copied as they are", Weight.FIRST)


MIRUS_ROWS: tuple[Row, ...] = (
    row("name", ours="the link's name, unless `--link` gives one", take=read),
    row("topics.whitelist", ours="`topics.include`", take=_include),
    row("topics.regex", ours="`topics.regex`; matches the whole name too", take=_regex),
    row("topics.regex.list", ours="`topics.regex`", take=_regex_list),
    row(
        *("destination.topic.name.prefix", "destination.topic.name.suffix"),
        ours="`naming` with policy `prefix` or `suffix`; both together with policy `rules`",
        take=_affix,
    ),
    row(
        "enable.destination.topic.checking",
        ours="`create_topics: false` for true, which is its default: partitions wait for their topic",
        take=_checking,
    ),
    row("enable.partition.matching", ours="needless: records keep their partition, always", take=_matching),
    row(
        *("source.key.converter", "source.value.converter", "source.header.converter"),
        ours="needless for bytes; – no other: records are copied as they are",
        take=_converter,
    ),
    row("consumer.*", ours="`clusters.<source>`: see the clients below", take=client_of("source", reads=True)),
    row(
        *("destination.consumer.*", "producer.override.*", "producer.*", "destination.bootstrap.*"),
        ours="`clusters.<destination>`: see the clients below",
        take=_destination,
    ),
    row(
        *("bootstrap.servers", "security.protocol", "sasl.*", "ssl.*"),
        ours="of a worker: `clusters.<destination>`, where nothing more special is said",
        take=_of_worker,
    ),
    no("monitor.poll.wait.ms", why="the monitor looks once a minute, or as `strait run --interval` says"),
    needless("poll.timeout.ms", why="brokers answer as soon as there is something"),
    needless("replay.policy", "replay.window.records", why="no record is copied twice"),
    needless("commit.failure.restart.ms", why="positions are not committed; they follow from the destination"),
    needless(
        *("mirus.task.monitor.polling.interval.ms", "mirus.task.auto.restart.enabled"),
        "mirus.connector.auto.restart.enabled",
        why="a failed slot is started again by Spark, a dead application by Airflow",
    ),
    needless("partitions", why="Mirus' own, for its tasks"),
    *CONNECT_ROWS,
)
