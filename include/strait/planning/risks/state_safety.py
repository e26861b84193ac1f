"""Checks that a link's state topics are as durable as the topics that they describe, and stay small. Pure.

An existing link is never stopped for this: the control plane sets those configurations that need no decision and
reports the rest as risks.
"""

from collections.abc import Iterable, Iterator, Mapping

from strait.config.naming import map_topic, plan_topic
from strait.model import TopicAcl, TopicFacts
from strait.planning.risks.risks import Risk
from strait.state.safety import MIN_IN_SYNC, UNCLEAN, durable_topics, safer_configs
from strait.state.segments import segments_of, smaller_configs
from strait.text import plural


def command(topic: str, put: Mapping[str, str]) -> str:
    """Return the command with which an operator sets these configurations."""
    configs = ",".join(f"{name}={value}" for name, value in put.items())
    alter = "kafka-configs.sh --bootstrap-server <destination> --alter --entity-type topics"
    return f"{alter} --entity-name {topic} --add-config {configs}"


def state_changes(link: str, topics: Mapping[str, TopicFacts]) -> dict[str, Mapping[str, str]]:
    """Return state topic -> configurations to set on it.

    A configuration that is set on the topic itself is an operator's decision and stays unchanged.
    """
    found: dict[str, Mapping[str, str]] = {}
    for topic in _shown(link, topics):
        put = {name: value for name, value in _lacking(link, topic).items() if name not in topic.topic_configs}
        if put:
            found[topic.topic] = put
    return found


def _lacking(link: str, topic: TopicFacts) -> dict[str, str]:
    safer = safer_configs(topic) if topic.topic in durable_topics(link) else {}
    return {**safer, **smaller_configs(link, topic)}


def state_risks(link: str, topics: Mapping[str, TopicFacts], wanted_replicas: int) -> tuple[Risk, ...]:
    """Return the risks of losing the link's state or letting it grow.

    Args:
        wanted_replicas: the link's `replication_factor`, or else the highest number of replicas of a destination topic.
    """
    return tuple(risk for topic in _shown(link, topics) for risk in _of(link, topic, wanted_replicas))


def state_writers(link: str, acls: Iterable[TopicAcl]) -> tuple[Risk, ...]:
    """Return a risk if principals other than the link's own may write to its plan or map topic.

    Such a principal can change which topics the link replicates, and into which topics.

    Args:
        acls: the destination's topic ACLs.
    """
    rules = [acl for acl in acls if acl.permission == "ALLOW" and acl.operation in ("WRITE", "ALL")]
    decisive = plan_topic(link), map_topic(link)
    found = sorted({acl.principal for acl in rules if any(_covers(acl, topic) for topic in decisive)})
    if len(found) <= _OWN_PRINCIPALS and _EVERYBODY not in found:
        return ()
    detail = f"{' and '.join(decisive)} may be written by {', '.join(found)}: each of them decides what the link copies"
    return (Risk("state_writers", "", f"{detail}; grant WRITE and ALL on strait.* to the link's own principals alone"),)


def foreign_plan(version: int, group: str, proof: str) -> Risk:
    """Return the risk of a plan that is not proven and that this plan changes. ``proof``: how it is signed."""
    detail = (
        f"plan {version} of task group {group} is {proof} and differs from the link's settings: an older version, a host "
        "with another `state.key`, or a foreign client published it; this plan replaces it"
    )
    return Risk("foreign_plan", "", detail)


def _covers(acl: TopicAcl, topic: str) -> bool:
    if acl.pattern == "PREFIXED":
        return topic.startswith(acl.name)
    return acl.name in ("*", topic)


def wanted_replicas(replication_factor: int | None, copies: Iterable[TopicFacts]) -> int:
    """Return the number of replicas with which the state topics are not lost before the destination topics are."""
    return replication_factor or max((copy.replicas for copy in copies), default=0)


def _of(link: str, topic: TopicFacts, wanted: int) -> Iterator[Risk]:
    if topic.replicas < wanted and topic.topic in durable_topics(link):
        brokers = ", ".join(f"<broker {number}>" for number in range(1, wanted + 1))
        moved = f'{{"topic": "{topic.topic}", "partition": 0, "replicas": [{brokers}]}}'
        detail = f"{topic.topic} has {plural(topic.replicas, 'replica')}, {wanted} are needed"
        how = f'run kafka-reassign-partitions.sh --execute with {{"version": 1, "partitions": [{moved}]}}'
        yield Risk("state_replicas", "", f"{detail}; {how}")
    decided = {name: value for name, value in _lacking(link, topic).items() if name in topic.topic_configs}
    for name, value in decided.items():
        code, what = _CONFIGS.get(name, _GROWTH)
        yield Risk(
            code,
            "",
            f"{topic.topic} has {name}={topic.configs[name]}: {what}; run {command(topic.topic, {name: value})}",
        )


_OWN_PRINCIPALS = 2  # the control plane's and the slots'
_EVERYBODY = "User:*"
_CONFIGS = {
    MIN_IN_SYNC: ("state_min_insync", "the failure of one broker can lose its last records"),
    UNCLEAN: ("state_unclean_election", "an unclean leader election loses its last records"),
}
_GROWTH = ("state_growth", "old records stay in it for longer, and every process that starts reads them")


def _shown(link: str, topics: Mapping[str, TopicFacts]) -> list[TopicFacts]:
    """Return the state topics that exist and that the cluster describes to this principal."""
    found = [topics[name] for name in dict.fromkeys([*durable_topics(link), *segments_of(link)]) if name in topics]
    return [topic for topic in found if topic.replicas and not topic.denied]
