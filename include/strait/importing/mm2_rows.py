"""Translation of each property of MirrorMaker 2, named as MirrorSourceConnector has them. Pure."""

import re

from strait.importing.connect import CONNECT_ROWS, client_of, read
from strait.importing.draft import Flow, Given, Weight
from strait.importing.naming import add_patterns
from strait.importing.table import Row, Take, needless, no, row

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,249}")
_NO_CODE = "own code cannot be taken over"
_NO_CLIENT = "belongs to no cluster, so no client has it: set it for the clusters"


def _topics(flow: Flow, given: Given) -> None:
    names = [item for item in given.items if _PLAIN.fullmatch(item)]
    if names:
        flow.add(names, "topics", "include")
    add_patterns(flow, given, [item for item in given.items if item not in names], "topics", "regex")


def _name(flow: Flow, given: Given) -> None:
    flow.names[given.name.rpartition(".")[2]] = given


def _patterns(*path: str) -> Take:
    return lambda flow, given: add_patterns(flow, given, given.items, *path)


def _truth(*path: str) -> Take:
    return lambda flow, given: flow.put(given.is_true, *path)


def _number(*path: str) -> Take:
    def take(flow: Flow, given: Given) -> None:
        try:
            flow.put(int(given.value), *path)
        except ValueError:
            flow.leave(given, "is not a whole number")

    return take


def _replicas_of_heartbeats(flow: Flow, given: Given) -> None:
    if given.value != "-1":  # the broker's default is ours
        _number("heartbeats", "replication_factor")(flow, given)


def _defaults_from(flow: Flow, given: Given) -> None:
    flow.put("source" if given.value == "source" else "destination", "configs", "defaults_from")


MM2_ROWS: tuple[Row, ...] = (
    row("name", "enabled", "clusters", "mirrors", ours="read: which flows there are", take=read),
    row(
        "source.cluster.alias",
        "target.cluster.alias",
        ours="names of clusters; `<source>-to-<target>` the link's; without one, `source` and `target`",
        take=read,
    ),
    row(
        "topics",
        "topics.whitelist",
        ours="`topics.include` for names without a dot, `topics.regex` for others",
        take=_topics,
    ),
    row("topics.exclude", "topics.blacklist", ours="`topics.exclude`", take=_patterns("topics", "exclude")),
    row(
        "replication.policy.class",
        ours="`naming` with policy `alias` for DefaultReplicationPolicy, `identity` for IdentityReplicationPolicy; – no other",
        take=_name,
    ),
    row("replication.policy.separator", ours="`naming.separator`; if it is empty, policy `prefix`", take=_name),
    row(
        "replication.factor",
        ours="`replication_factor`; -1 is our default, the broker's",
        take=_number("replication_factor"),
    ),
    row("sync.topic.configs.enabled", ours="`configs.sync`", take=_truth("configs", "sync")),
    row(
        *("config.properties.exclude", "config.properties.blacklist"),
        ours="`configs.exclude`",
        take=_patterns("configs", "exclude"),
    ),
    row(
        "use.defaults.from",
        "config.property.filter.use.defaults.from",
        ours="`configs.defaults_from`",
        take=_defaults_from,
    ),
    row("sync.topic.acls.enabled", ours="`acls.sync`", take=_truth("acls", "sync")),
    row("emit.heartbeats.enabled", ours="`heartbeats.enabled`", take=_truth("heartbeats", "enabled")),
    row(
        "emit.heartbeats.interval.seconds",
        ours="`heartbeats.interval_seconds`",
        take=_number("heartbeats", "interval_seconds"),
    ),
    row("heartbeats.topic.replication.factor", ours="`heartbeats.replication_factor`", take=_replicas_of_heartbeats),
    needless("heartbeats.replication.enabled", why="heartbeats are copied wherever they are written"),
    no(
        *("refresh.topics.enabled", "refresh.topics.interval.seconds", "sync.topic.configs.interval.seconds"),
        "sync.topic.acls.interval.seconds",
        why="the monitor looks at all of it once a minute, or as `strait run --interval` says",
    ),
    no(
        *("emit.offset-syncs.enabled", "offset-syncs.topic.*", "offset.lag.max"),
        "replication.policy.internal.topic.separator.enabled",
        why="the link's own map says where each record is, exactly; MirrorMaker 2's topic for it is not written",
    ),
    needless("consumer.poll.timeout.ms", "admin.timeout.ms", why="requests have time-outs of their own"),
    row("groups", "groups.whitelist", ours="`consumer_groups.include`", take=_patterns("consumer_groups", "include")),
    row(
        *("groups.exclude", "groups.blacklist"),
        ours="`consumer_groups.exclude`",
        take=_patterns("consumer_groups", "exclude"),
    ),
    row("sync.group.offsets.enabled", ours="`consumer_groups.sync`", take=_truth("consumer_groups", "sync")),
    row(
        "sync.group.offsets.interval.seconds",
        ours="`consumer_groups.interval_seconds`",
        take=_number("consumer_groups", "interval_seconds"),
    ),
    row(
        "emit.checkpoints.enabled",
        ours="`consumer_groups.mm2_checkpoints`, which needs `consumer_groups.sync`; true by default",
        take=_truth("consumer_groups", "mm2_checkpoints"),
    ),
    needless("refresh.groups.*", "emit.checkpoints.interval.seconds", why="groups are looked at with each interval"),
    no("checkpoints.topic.*", why="the topic for checkpoints is created with the broker's defaults"),
    no(
        *("topic.filter.class", "group.filter.class", "config.property.filter.class", "forwarding.admin.class"),
        why=_NO_CODE,
        weight=Weight.FIRST,
    ),
    needless("metric.names.formats", why="figures are in reports and gauges"),
    needless(
        "dedicated.mode.enable.internal.rest",
        *("source.cluster.offset.storage.*", "source.cluster.status.storage.*", "source.cluster.config.storage.*"),
        *("target.cluster.offset.storage.*", "target.cluster.status.storage.*", "target.cluster.config.storage.*"),
        why="Kafka Connect's own; Strait's state is in topics on the destination",
    ),
    row(
        *("source.cluster.*", "source.admin.*"),
        ours="`clusters.<source>`: see the clients below; in `mm2.properties` `<source>.*`",
        take=client_of("source"),
    ),
    row(
        "source.consumer.*",
        ours="`clusters.<source>`: see the clients below; in `mm2.properties` `<source>.consumer.*`",
        take=client_of("source", reads=True),
    ),
    row(
        *("target.cluster.*", "target.admin.*"),
        ours="`clusters.<target>`: see the clients below; in `mm2.properties` `<target>.*`",
        take=client_of("destination"),
    ),
    row(
        *("target.producer.*", "producer.override.*"),
        ours="`clusters.<target>`: see the clients below; in `mm2.properties` `<target>.producer.*`",
        take=client_of("destination", writes=True),
    ),
    row(
        *("bootstrap.servers", "security.protocol", "sasl.*", "ssl.*"),
        ours="`clusters`, if they have no prefix in `mm2.properties`: for each cluster without its own; "
        f"– any other: {_NO_CLIENT}",
        take=lambda flow, given: flow.leave(given, _NO_CLIENT, Weight.FIRST),
    ),
    no("source.producer.*", "target.consumer.*", why="for MirrorMaker 2's own topics, which the link does not write"),
    row(
        *("consumer.*", "consumer.override.*"),
        ours="`clusters.<source>`: see the clients below; in `mm2.properties` for a flow only",
        take=client_of("source", reads=True),
    ),
    row(
        "producer.*",
        ours="`clusters.<target>`: see the clients below; in `mm2.properties` for a flow only",
        take=client_of("destination", writes=True),
    ),
    no("admin.*", why="here all clients of a cluster have the same properties: say it of the clusters"),
    *CONNECT_ROWS,
)
