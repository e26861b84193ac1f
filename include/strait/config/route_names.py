"""Names of routes: a source topic that its rule divides is planned, mapped and reported once for each route, under a name
that no topic can have, such as `customers→customers_big`. Clusters never see such a name. Pure."""

from collections import Counter
from collections.abc import Iterable

from strait.model import TopicPartition

ARROW = "→"
"""Between the source topic and the destination topic of a route's name. Kafka allows it in no topic's name."""
_TYPED = "->"


def route_name(topic: str, destination: str) -> str:
    """Return the name of the route from a source topic to a destination topic."""
    return f"{topic}{ARROW}{destination}"


def topic_of(name: str) -> str:
    """Return the topic that the source has under a name: a route's source topic, or the name itself."""
    return name.partition(ARROW)[0] if ARROW in name else name


def destination_of(name: str) -> str:
    """Return the destination topic of a route's name; "" if it is not one."""
    return name.partition(ARROW)[2]


def is_route(name: str) -> bool:
    return ARROW in name


def place_of(place: TopicPartition) -> TopicPartition:
    """Return the partition that the source has under the name of a route, or the partition itself."""
    return place._replace(topic=topic_of(place.topic)) if ARROW in place.topic else place


def typed(name: str) -> str:
    """Return a typed name with an arrow in place of `->`."""
    return name.replace(_TYPED, ARROW)


def is_meant(given: str, name: str) -> bool:
    """Return whether the given name is that of this topic or route, or of the route's source topic."""
    return given in (name, topic_of(name)) or typed(given) == name


def in_layers(places: Iterable[TopicPartition]) -> list[dict[TopicPartition, TopicPartition]]:
    """Return partition on the source -> its name in ``places``, in as few parts as hold each partition of the source once.
    Without routes that is one part."""
    layers: list[dict[TopicPartition, TopicPartition]] = []
    depth: Counter[TopicPartition] = Counter()
    for place in places:
        there = place_of(place)
        if depth[there] == len(layers):
            layers.append({})
        layers[depth[there]][there] = place
        depth[there] += 1
    return layers
