"""A rehearsal: the checks and actions of a failover, with consumer groups of other names, while all clients keep
working."""

from strait.config.route_names import topic_of
from strait.consumer_groups.shadow import next_places, try_shadow_groups
from strait.control.failover.checks import audited, reverse, tail_of, take_transformed, whole
from strait.control.failover.observation import Observation
from strait.control.failover.turn import Settings, Turn
from strait.control.link_status import link_status
from strait.kafka.reading import first_records
from strait.model import TopicFacts
from strait.planning import failover_groups, failover_report, readiness
from strait.planning.consumer_groups import GroupStatus
from strait.planning.failover import Check
from strait.planning.readiness import Sample

_SAMPLES_MOST = 100
_CONFIGS = ("cleanup.policy", "retention.ms", "retention.bytes")


class Rehearsal:
    """Its groups are deleted afterwards. It does not wait: a condition that a failover would wait for lowers the
    score."""

    def __init__(self, observation: Observation, turn: Turn, settings: Settings) -> None:
        self._look = observation
        self._turn = turn
        self._settings = settings
        self._groups: list[GroupStatus] = []

    def run(self) -> None:
        """Run the rehearsal. Raises the errors of both clusters."""
        take = self._turn.take
        self._turn.look_ahead()
        take("copying", lambda: whole(self._look))
        take_transformed(self._look, self._turn, accept=True)  # it is no failover: a warning is enough
        take("topics", self._topics)
        take("settings", lambda: readiness.settings(self._pairs()))
        take("tail", lambda: tail_of(self._look, self._settings))
        take("groups", self._translated)
        take("shadow", self._shadow)
        take("records", self._records)
        take("audited", lambda: audited(self._look))
        take("reverse", lambda: reverse(self._look))
        rows = self._look.among(self._look.status().rows)
        self._turn.end(
            "done",
            score=readiness.score(self._turn.record.steps),
            rpo_records=readiness.rpo_records(rows),
            rpo_seconds=readiness.rpo_seconds(rows),
        )

    def _topics(self) -> Check:
        status = link_status(self._look.link)
        return readiness.topics(status.left_out, status.source_trouble)

    def _pairs(self) -> list[tuple[TopicFacts, TopicFacts | None]]:
        planned = [topic for plan in self._look.plans().values() for topic in plan.topics]
        names = {topic.source: topic.destination for topic in planned if self._look.takes(topic.source)}
        here = self._look.source.observe({*map(topic_of, names)}.__contains__, _CONFIGS).topics
        there = self._look.destination.observe({*names.values()}.__contains__, _CONFIGS).topics
        found = [(here.get(topic_of(name)), copy) for name, copy in sorted(names.items())]
        return [(topic, there.get(copy)) for topic, copy in found if topic is not None]

    def _translated(self) -> Check:
        found = self._look.trial(include_moved=self._settings.include_moved)
        self._groups = [status for status in found if status.selected]
        exact = sum(status.synced for status in self._groups)
        self._turn.keep(groups=len(self._groups), groups_exact=exact, group_list=failover_report.groups_of(found))
        return failover_groups.groups(found, accept=self._settings.accept_inexact, soon=True)

    def _shadow(self) -> Check:
        return readiness.shadow(*try_shadow_groups(self._look.link, self._groups))

    def _records(self) -> Check:
        """Compare the next records of each group on both clusters; a record that is not copied yet has no counterpart
        and is skipped, as are transformed topics."""
        places = next_places(self._groups, _SAMPLES_MOST, without=self._turn.record.transformed)
        here = first_records(*self._look.link.source, {place: offset for _, place, offset, _, _ in places})
        there = first_records(*self._look.link.destination, {place: offset for *_, place, offset in places})
        return readiness.samples(
            [
                Sample(group, place, here[place], there[copy])
                for group, place, _, copy, _ in places
                if here[place] is None or there[copy] is not None
            ],
            transformed=self._turn.record.transformed,
        )
