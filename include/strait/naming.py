"""Source topic -> destination topic, and every other name that Strait gives. The only place names are derived."""

from strait.config import Naming

STATE_PREFIX = "strait."


def destination_topic(topic: str, naming: Naming) -> str:
    """The destination's name for a source topic."""
    return f"{naming.prefix}{topic}{naming.suffix}"


def source_topic(topic: str, naming: Naming) -> str | None:
    """The source topic that a destination topic is the copy of, or None where no source topic has that copy."""
    if len(topic) <= len(naming.prefix) + len(naming.suffix):
        return None
    if not (topic.startswith(naming.prefix) and topic.endswith(naming.suffix)):
        return None
    return topic[len(naming.prefix) : len(topic) - len(naming.suffix)]


def plan_topic(link: str) -> str:
    """Compacted; key: task group, value: its whole plan."""
    return f"{STATE_PREFIX}{link}.plan"


def map_topic(link: str) -> str:
    """Compacted; the runs that tie source positions, sequences and destination offsets together."""
    return f"{STATE_PREFIX}{link}.map"


def reports_topic(link: str) -> str:
    """Kept for a day; one report a second from each slot."""
    return f"{STATE_PREFIX}{link}.reports"


def control_transactional_id(link: str) -> str:
    """The transactional id under which one control plane at a time may publish for a link."""
    return f"{STATE_PREFIX}{link}.control"


def application_name(link: str, group: str) -> str:
    """The Spark application of one task group, as shown in Spark's own pages."""
    return f"strait-{link}-{group}"


def is_internal(topic: str) -> bool:
    """Topics that are never copied: Kafka's own, Strait's own, and MirrorMaker 2's internal ones (by its 4.3 rule)."""
    if topic.startswith(("__", ".", STATE_PREFIX)):
        return True
    return topic.endswith(".checkpoints.internal") or (topic.startswith("mm2") and topic.endswith(".internal"))
