"""Response of the page about a link's topics. Pure."""

from dataclasses import asdict

from strait.exporter.observation import Observation
from strait.planning.status.needs import late_topics
from strait.planning.status.topics import by_topic
from strait_airflow.page.views.answers import Data, some
from strait_airflow.page.views.links import partition_rows


def topic_page(seen: Observation | None, *, search: str, offset: int, limit: int) -> Data:
    """Return one page of a link's topics, those that need an operator first.

    Args:
        search: part of the name, in any letter case.
    """
    late = frozenset() if seen is None else late_topics(seen.needs)
    topics = by_topic(partition_rows(seen), late)
    found = [topic for topic in topics if search.casefold() in topic.topic.casefold()]
    rows = [
        asdict(topic)
        | {
            "badge": topic.badge.as_data(),
            "badges": [badge.as_data() | {"count": count} for badge, count in topic.badges],
            "lag_records": topic.lag_records if topic.lag_records >= 0 else None,
        }
        for topic in some(found, offset, limit)
    ]
    return {"total": len(found), "of": len(topics), "rows": rows}
