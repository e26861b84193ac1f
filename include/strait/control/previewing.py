"""Evaluates the transformation of a topic for its most recent records on the source, of which it reads a limited number.
Changes nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from strait.avro.reading import NotAvro
from strait.avro.values import Values
from strait.config.links import Link
from strait.config.route_names import destination_of, topic_of, typed
from strait.config.routes import routes_of
from strait.config.rules import rule_of
from strait.config.selecting import selects
from strait.errors import ConfigError
from strait.kafka.admin import Admin
from strait.kafka.reading import read_ranges
from strait.launch.preview import Result, Sample, evaluate
from strait.model import TopicPartition
from strait.planning.plan.planner import Proposal
from strait.planning.review.preview import Content, Preview, Previewed
from strait.planning.topics.identity import Change
from strait.planning.topics.selection import Skip
from strait.state.link_handle import LinkHandle
from strait.state.transform import TopicTransform
from strait.text import plural

MOST_RECORDS = 1_000
MOST_BYTES = 16 << 20
MOST_PARTITIONS = 20
"""From how many partitions records are read: those with the most records."""


def preview(
    handle: LinkHandle, link: Link, admin: Admin, proposal: Proposal, topic: str, progress: Callable[[str], None]
) -> Preview:
    """Return the results of the transformation of a source topic for its recent records.

    Args:
        admin: of the source. ``proposal``: by the same rules. ``progress``: called with the present activity.

    Raises:
        ConfigError: the link does not select the topic, or does not transform it.
        ClusterUnavailable, NotAuthorized, LaunchError, SetupError
    """
    topic = topic_of(typed(topic))
    rule = rule_of(link.topics, topic).transform
    if not selects(link.topics, topic):
        raise ConfigError(f"link {handle.name}", [f"its `topics` do not select {topic!r}"])
    if rule is None:
        raise ConfigError(f"link {handle.name}", [f"its rules do not transform {topic!r}"])
    routes = routes_of(link.topics, topic)
    names = [one.name for one in routes] or [topic]
    transforms = {name: made for name in names if (made := TopicTransform.of_topic(link.topics, name)) is not None}
    first = transforms[names[0]]
    samples = recent(handle, admin, topic, progress)
    values = None if first.avro is None else first.avro.values()
    wanted = {name: made.model_dump(mode="json") for name, made in transforms.items()}
    found = evaluate(wanted, samples, link.spark, progress)
    texts = (f"to {one.destination}: {transforms[one.name]}" for one in routes)
    return Preview(
        topic,
        "; ".join(texts) or str(first),
        rule.malformed,
        []
        if found.refused
        else [_previewed(*pair, first, values) for pair in zip(samples, found.results, strict=True)],
        found.refused,
        list(dict.fromkeys(f"{item.reason}: {item.detail}" for item in _not_copied(proposal, topic))),
        list(first.secrets),
        [one.destination for one in routes],
    )


def _not_copied(proposal: Proposal, topic: str) -> Iterator[Change | Skip]:
    """Yield why the topic, or a route of it, is not copied."""
    yield from (change for place, change in proposal.survey.halted.items() if topic_of(place.topic) == topic)
    yield from (skip for skip in proposal.survey.selection.skipped if topic_of(skip.topic) == topic)


def _previewed(sample: Sample, result: Result, transform: TopicTransform, values: Values | None) -> Previewed:
    before = Content(sample.key, _readable(sample.value, values), sample.headers)
    after = None
    if result.kind == "copied":
        value = result.value if transform.value else _readable(result.value, values)
        after = Content(result.key, value, sample.headers if transform.headers == "keep" else ())
    place = sample.partition, sample.offset, sample.timestamp_ms
    return Previewed(*place, result.kind, before, after, destination_of(result.name))


def _readable(value: bytes | None, values: Values | None) -> bytes | None:
    """Return a value in Avro as JSON; any other as it is. ``values``: decodes them."""
    if value is None or values is None:
        return value
    try:
        return values.as_json(value)
    except NotAvro:
        return value


def recent(handle: LinkHandle, admin: Admin, topic: str, progress: Callable[[str], None]) -> Sequence[Sample]:
    """Return the last committed records of a topic, at most `MOST_RECORDS`, and hardly more than `MOST_BYTES`, from its
    partitions in equal parts."""
    count = admin.partition_counts().get(topic, 0)
    if not count:
        raise ConfigError(f"topic {topic}", [f"cluster {admin.cluster} has no such topic, or hides it"])
    progress(f"preview: looking for recent records of {topic}")
    places = [TopicPartition(topic, number) for number in range(count)]
    first, end = admin.offsets(places, "earliest"), admin.offsets(places, "latest")
    held = {place: end[place] - first[place] for place in places if end[place] > first[place]}
    chosen = sorted(held, key=lambda place: (-held[place], place))[:MOST_PARTITIONS]
    each = MOST_RECORDS // max(1, len(chosen))
    ranges = {place: (max(first[place], end[place] - each), end[place]) for place in chosen}
    sizes: Counter[TopicPartition] = Counter()
    full: set[TopicPartition] = set()
    found: list[Sample] = []
    for message in read_ranges(*handle.source, ranges, full):
        place = TopicPartition(message.topic(), message.partition())
        key, value = message.key(), message.value()
        sizes[place] += len(key or b"") + len(value or b"")
        if sizes[place] > MOST_BYTES // len(chosen):
            full.add(place)
        headers = tuple(message.headers() or ())
        progress(f"preview: {plural(len(found), 'record')} of {topic} read")
        found.append(Sample(place.partition, message.offset(), message.timestamp()[1], key, value, headers))
    return found
