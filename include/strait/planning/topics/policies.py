"""The rules of a link, as they apply to each topic. Pure."""

from strait.config.links import Link, Topics
from strait.config.route_names import topic_of
from strait.config.rules import rule_of
from strait.config.settings import Copies
from strait.config.start_offset import Start, until_text
from strait.model import TopicFacts
from strait.state.schema import TopicPolicy
from strait.state.transform import TopicTransform

_KAFKA_MAX_MESSAGE_BYTES = 1_048_588  # if the cluster does not report the topic's value

FACTS = frozenset({"max_message_bytes", "source_compacted", "source_append_time", "destination_append_time", "ends"})
"""Fields of a policy that describe the two topics; the link's rules determine all others."""


def start_of(link: Link, topic: str) -> Start:
    """Return the configured start of a source topic that is new to the link."""
    start = rule_of(link.topics, topic).start
    return link.start if start is None else start


def creates(link: Link, topic: str) -> bool:
    """Return whether the link creates a source topic's destination topic, and the partitions that it lacks."""
    ruled = rule_of(link.topics, topic).create
    return link.create_topics if ruled is None else ruled


def copies_of(link: Link, topic: str, copy: str) -> Copies:
    """Return which batches that a link wrote to a source topic are replicated. If both topics have the same name, such
    a batch might return to its origin, or arrive twice; under another name none does, unless it came from the
    destination."""
    chosen = rule_of(link.topics, topic).copies or link.copies
    return chosen or ("skip" if topic_of(topic) == copy else "forward")


def topic_policy(link: Link, source: TopicFacts, destination: TopicFacts) -> TopicPolicy:
    """Return how the link replicates a topic."""
    return policy_of(link.topics, source, destination, copies_of(link, source.topic, destination.topic))


def policy_of(topics: Topics, source: TopicFacts, destination: TopicFacts, copies: Copies = "all") -> TopicPolicy:
    """Return how a topic is replicated: its rule, and the facts about both topics that the slots need."""
    rule = rule_of(topics, source.topic)
    limit = destination.configs.get("max.message.bytes", "")
    return TopicPolicy(
        on_loss=rule.on_loss,
        on_foreign=rule.on_foreign,
        on_refused=rule.on_refused,
        compression=rule.compression,
        max_message_bytes=int(limit) if limit.isdecimal() and int(limit) else _KAFKA_MAX_MESSAGE_BYTES,
        source_compacted="compact" in source.configs.get("cleanup.policy", ""),
        source_append_time=stamps(source),
        destination_append_time=stamps(destination),
        topic_class=rule.topic_class or "",
        copies=copies,
        transform=TopicTransform.of_topic(topics, source.topic),
        until=until_text(rule.until),
    )


def with_facts(policy: TopicPolicy, facts: TopicPolicy) -> TopicPolicy:
    """Return a policy with another one's facts about the two topics."""
    return policy.model_copy(update={name: getattr(facts, name) for name in FACTS})


def stamps(topic: TopicFacts) -> bool:
    """Return whether the topic's brokers replace the timestamps of records with their own."""
    return topic.configs.get("message.timestamp.type") == "LogAppendTime"
