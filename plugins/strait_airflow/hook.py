"""`StraitHook`: a link and its clusters, for tasks of any DAG of an Airflow that runs Strait."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from strait_airflow.page_address import page_address

if TYPE_CHECKING:
    from confluent_kafka import Message

    from strait.control.link_status import LinkStatus
    from strait.model import TopicPartition
    from strait.state.link_handle import ConfiguredLink


class StraitHook(BaseHook):
    """A link as the links file, the Connections `strait_<cluster>` and the Variable `strait_topics_<link>` define it.

    Every method raises Airflow's exceptions; only those that a retry may resolve are retried.
    """

    def __init__(self, link: str) -> None:
        super().__init__()
        self.link = link

    def get_conn(self) -> "ConfiguredLink":
        """Return the link with its clusters, whose properties contain secrets."""
        from strait_airflow.errors import airflow_errors
        from strait_airflow.settings import link_of

        with airflow_errors(self.link):
            return link_of(self.link, live=True)

    @property
    def page(self) -> str:
        """The address of the link on Strait's page."""
        return page_address(self.link)

    def status(self, topic: str | None = None) -> "LinkStatus":
        """Return the state of the link, as `strait status` reports it. ``topic``: only of this source topic."""
        from strait.control.link_status import link_status
        from strait_airflow.errors import airflow_errors

        link = self.get_conn()
        with airflow_errors(self.link):
            return link_status(link, topic)

    def records(self, group: str, reached: Mapping[str, Any]) -> "Iterator[Message]":
        """Yield the destination's committed records from the group's offsets up to the moment that a
        `StraitCaughtUpSensor` returned. Nothing is committed: call `commit` with the same arguments once the records are
        processed. Runs of a DAG then read every record, and those of a failed run again.

        Args:
            group: a consumer group that only this DAG uses. Partitions without an offset are read from their start.
            reached: the sensor's result. Partitions whose end on the destination is unknown are left to a later run.
        """
        from strait.kafka.reading import read_ranges
        from strait_airflow.errors import airflow_errors

        link = self.get_conn()
        with airflow_errors(self.link):
            start = link.admin("destination").committed(group)
            ranges = {place: (start.get(place, 0), end) for place, end in _known_ends(reached).items()}
            yield from read_ranges(*link.destination, ranges)

    def commit(self, group: str, reached: Mapping[str, Any]) -> None:
        """Commit a moment for the group once all records before it are processed, best in a task that follows: the next
        `records` starts there. Offsets are only moved forward, so a repeated run is harmless.

        Args:
            group, reached: as for `records`. Partitions whose end on the destination is unknown keep their offsets.
        """
        from strait_airflow.errors import airflow_errors

        link = self.get_conn()
        with airflow_errors(self.link):
            start = link.admin("destination").committed(group)
            ends = {place: end for place, end in _known_ends(reached).items() if start.get(place, 0) < end}
            _commit(*link.destination, group, ends)

    def hour_records(self, hour: Mapping[str, Any]) -> "Iterator[Message]":
        """Yield the destination's committed records of one hour of a topic: with all hours, each record once. Nothing is
        committed, so a run that is repeated reads the same again. Fails without a retry if the hour may have records whose
        offsets on the destination are unknown.

        Args:
            hour: from `strait_airflow.assets.hour_of`. If the topic was created again in it, the destination topic is read
                from its start.
        """
        from strait.kafka.reading import read_ranges
        from strait.model import TopicPartition
        from strait_airflow.errors import airflow_errors, raise_for

        ranges = {}
        for number, (start, end) in hour["destination"].items():
            first, last = hour["source"][number]
            if end is not None and (start is not None or hour["created_again"]):
                ranges[TopicPartition(hour["destination_topic"], int(number))] = (start or 0, end)
            elif first < last:
                raise_for(_unknown(hour, number), retriable=False)
        link = self.get_conn()
        with airflow_errors(self.link):
            yield from read_ranges(*link.destination, ranges)

    def translate(self, ends: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int | None]]:
        """Return the destination's offsets for offsets of source partitions, by destination topic; None: unknown.

        Args:
            ends: source topic -> partition -> offset of the next record.
        """
        from strait.consumer_groups.offsets import Offsets
        from strait.model import TopicPartition
        from strait.planning.status.up_to import by_topic
        from strait_airflow.errors import airflow_errors

        link = self.get_conn()
        places = [(TopicPartition(topic, n), at) for topic, found in ends.items() for n, at in found.items()]
        with airflow_errors(self.link), Offsets(link) as offsets:
            found = offsets.to_destination(places)
        return by_topic({TopicPartition(item.to_topic, item.partition): item.to_offset for item in found})


def _known_ends(reached: Mapping[str, Any]) -> "dict[TopicPartition, int]":
    from strait.model import TopicPartition

    found = reached["destination_ends"].items()
    return {TopicPartition(topic, int(n)): end for topic, ends in found for n, end in ends.items() if end is not None}


def _unknown(hour: Mapping[str, Any], number: str) -> str:
    first, last = hour["source"][number]
    return (
        f"link {hour['link']}: hour {hour['hour']} of topic {hour['topic']}: the destination offsets of partition {number} are "
        f"unknown (process offsets {first} to {last - 1} of partition {number} of the source topic instead, then mark this task "
        "as success)"
    )


def _commit(properties: "Mapping[str, str]", cluster: str, group: str, ends: "Mapping[TopicPartition, int]") -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka import TopicPartition as KafkaTopicPartition

    from strait.kafka.clients import Watch, make_consumer

    if not ends:
        return
    watch = Watch(cluster)
    consumer = make_consumer(properties, watch, group_id=group)
    try:
        consumer.commit(offsets=[KafkaTopicPartition(*place, end) for place, end in ends.items()], asynchronous=False)
    except KafkaException as error:
        raise watch.translate(error, f"committing offsets of group {group}") from error
    finally:
        consumer.close()
