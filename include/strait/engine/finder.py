"""Finds out where partitions stand: the one recovery path, from doubt to a position.

First the destination's leader says which record is next (strait.engine.lookup). Then the map is read up to where it ended
after that answer, since another writer of the link may have written down gaps before the records that were just found.
Then the map says where the source goes on.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from strait.engine import codes, recovery, standby
from strait.engine.channel import Channel
from strait.engine.cluster import Cluster
from strait.engine.lookup import Lookup
from strait.engine.loop import Loop
from strait.engine.offsets import LATEST, Offsets, ask_offsets
from strait.engine.partition import Partition, Phase, Repetition
from strait.engine.verification import Decide, Failed, Verification, verify_repetition
from strait.model import topic_id_text
from strait.offset_map import covering, destination_offset, locate, places, wire_sequence
from strait.reasons import Reason
from strait.state.schema import Run

FIND_SECONDS = 0.02
_LOST = codes.Answer(Reason.DESTINATION_UNREACHABLE, codes.SOON_SECONDS)
"""On its way: the next connection is dialled with pauses of its own."""
_NO_SOURCE = codes.Answer(Reason.SOURCE_UNREACHABLE, codes.SHORTLY_SECONDS)
_NO_DESTINATION = codes.Answer(Reason.DESTINATION_UNREACHABLE, codes.SHORTLY_SECONDS)
Doubt = Callable[[Partition, Reason | None, str, tuple[float, float]], None]


class Map(Protocol):
    """The map as it is read by its owner. ``map_end``: the first offset of its topic that was not read yet."""

    @property
    def runs(self) -> Mapping[tuple[str, int], Sequence[Run]]: ...

    @property
    def map_end(self) -> int: ...


class _Standing(NamedTuple):
    partition: Partition
    generation: int
    found: recovery.Found

    @property
    def still_asked(self) -> bool:
        return (
            self.partition.phase is Phase.LOOKING
            and self.partition.generation == self.generation
            and not self.partition.retired
        )


class Finder:
    """``problem(partition)``: why its destination cannot be asked; ``doubt``: it could not be found, look again;
    ``placed(partition, found, anew)``: it goes on, ``anew`` with the first record of a source topic that replaced another.
    """

    def __init__(
        self,
        loop: Loop,
        source: Cluster,
        destination: Cluster,
        producer_id: int,
        known: Map,
        map_topic: str,
        *,
        problem: Callable[[Partition], tuple[Reason, str] | None],
        doubt: Doubt,
        placed: Callable[[Partition, recovery.Found, bool], None],
    ) -> None:
        self._loop = loop
        self._source = source
        self._destination = destination
        self._producer_id = producer_id
        self._known = known
        self._map_topic = map_topic
        self._problem = problem
        self._doubt = doubt
        self._placed = placed
        self._lost: set[Partition] = set()
        self._find_at = 0.0
        self._standing: list[_Standing] = []  # their number is known; the map's end is not asked for yet
        self._asking = False
        self._reading: list[tuple[int, list[_Standing]]] = []  # until the map is read up to there

    @property
    def reads_map(self) -> bool:
        """Partitions wait for the map to be read on."""
        return bool(self._reading)

    def add(self, partition: Partition) -> None:
        """It is lost; find it once its time has come and nothing of it is in flight."""
        self._lost.add(partition)

    def forget(self, partition: Partition) -> None:
        self._lost.discard(partition)

    def step(self) -> None:
        """Begin and end what is due."""
        if self._lost and self._loop.now >= self._find_at:
            self._find_at = self._loop.now + FIND_SECONDS
            self._begin()
        if self._standing and not self._asking:
            self._ask_for_the_maps_end()
        while self._reading and self._known.map_end >= self._reading[0][0]:
            for standing in self._reading.pop(0)[1]:
                self._place(standing)

    def _begin(self) -> None:
        by_node: dict[int, list[Partition]] = defaultdict(list)
        for partition in self._lost:
            if partition.in_flight or partition.retry_at > self._loop.now:
                continue
            problem = self._problem(partition)
            if problem is None and not self.runs_of(partition):
                problem = Reason.MAP_RUN_MISSING, "the map has no run for these two topics"
            if problem is not None:
                partition.reason, partition.detail = problem
                partition.retry_at = self._loop.now + codes.SHORTLY_SECONDS[0]
                self._destination.refresh()
            elif partition.destination_node >= 0:
                by_node[partition.destination_node].append(partition)
        for node, partitions in by_node.items():
            self._look_up(node, partitions)

    def _look_up(self, node: int, partitions: list[Partition]) -> None:
        channel = self._destination.prompt_channel(node)
        if channel is None:
            trouble = self._destination.trouble(node)
            for partition in partitions if trouble else ():
                partition.reason, partition.detail = Reason.DESTINATION_UNREACHABLE, trouble
            return
        self._lost.difference_update(partitions)
        for partition in partitions:
            partition.recoveries += 1
        Lookup(
            channel,
            self._producer_id,
            partitions,
            self.runs_of,
            on_outcome=self._take_outcome,
            on_failed=self._lookup_failed,
        ).start()

    def _take_outcome(self, partition: Partition, outcome: recovery.Found | recovery.Refused) -> None:
        if isinstance(outcome, recovery.Refused):
            self._doubt(partition, outcome.reason, outcome.detail, codes.wait_for(outcome.reason))
        else:
            self._standing.append(_Standing(partition, partition.generation, outcome))

    def _lookup_failed(self, partition: Partition, code: int, cause: str) -> None:
        if code:
            answer = codes.answer(codes.PRODUCE, code, Reason.DESTINATION_UNREACHABLE)
            self._again(partition, answer, f"looking up {cause}: {codes.name(code)}")
        else:
            self._again(partition, _LOST, f"looking up the position: {cause}")

    def _again(self, partition: Partition, answer: codes.Answer, detail: str) -> None:
        """It could not be found this time."""
        self._source.refresh()
        self._destination.refresh()
        self._doubt(partition, answer.reason, detail, answer.wait_seconds)

    # --- the map ------------------------------------------------------------------------------------------------------

    def _ask_for_the_maps_end(self) -> None:
        channel = self._map_channel()
        if channel is None:
            return
        asked, self._standing = self._standing, []
        self._asking = True

        def take(offsets: Offsets) -> None:
            self._asking = False
            error, end = offsets[self._map_topic, 0]
            if error:
                failed(error, f"the end of {self._map_topic}")
            else:
                self._reading.append((end, asked))

        def lost(cause: str) -> None:
            self._asking = False
            failed(0, f"the end of {self._map_topic}: {cause}")

        def failed(code: int, cause: str) -> None:
            self._destination.refresh()
            for standing in asked:
                if standing.still_asked:
                    self._lookup_failed(standing.partition, code, cause)

        ask_offsets(channel, [(self._map_topic, 0)], LATEST, on_offsets=take, on_lost=lost)

    def _map_channel(self) -> Channel | None:
        node = self._destination.leader(self._map_topic, 0).node
        if node < 0:
            self._destination.refresh()
            return None
        return self._destination.prompt_channel(node)

    def _place(self, standing: _Standing) -> None:
        if not standing.still_asked:
            return
        standing = standing._replace(found=with_what_was_acknowledged(standing.partition, standing.found))
        partition, sequence = standing.partition, standing.found.sequence
        if standby.keeps_out(partition, sequence, self._loop.now):
            self.add(partition)
            return
        runs = self.runs_of(partition)
        if not any(run.source_id == topic_id_text(partition.source_id) for run in runs):
            partition.found(runs, sequence, None)  # another topic under the old name: it is copied from its start
            self._placed(partition, standing.found, True)
            return
        if partition.repetition is not None:
            self._look_into(standing, runs, partition.repetition)
            return
        positions = places(runs, sequence)
        confirmed = any(run.sequence_base <= run.sequence_end == sequence for run in runs)
        doubtful = len(positions) > 1 or (partition.policy.source_compacted and not confirmed)
        if doubtful and sequence > runs[0].sequence_base:
            self._verify(standing, runs, positions)
        else:
            partition.found(runs, sequence, positions[0])
            self._placed(partition, standing.found, False)

    def _look_into(self, standing: _Standing, runs: Sequence[Run], repetition: Repetition) -> None:
        """If other records stand where ours were thought to be, ours are copied again, and all behind them."""
        partition, sequence = standing.partition, standing.found.sequence

        def decide(same: bool) -> None:
            if not standing.still_asked:
                return
            partition.repetition = None
            if same:
                self._place(standing)
                return
            partition.recopied += max(0, places(runs, sequence)[0] - repetition.first)
            partition.found(runs, sequence, repetition.first)
            self._placed(partition, standing.found, False)

        failed = self._unless_settled(partition, f"the batch at offset {repetition.offset}")
        destination = self._destination.prompt_channel(partition.destination_node)
        if destination is None:
            failed(_NO_DESTINATION, "its leader cannot be reached")
        else:
            verify_repetition(partition, repetition, destination, decide, failed)

    def _verify(self, standing: _Standing, runs: Sequence[Run], positions: Sequence[int]) -> None:
        """Where the map's words disagree, the destination's last record tells which of them are true. So it does of a
        compacted source, which two writers may have read differently."""
        partition, sequence = standing.partition, standing.found.sequence
        left = list(positions)

        def decide(epoch: int | None) -> None:
            if not standing.still_asked:
                return
            position = left.pop(0)
            if epoch is None and left:
                attempt()
                return
            if epoch is None:
                partition.found(runs, sequence, self._repeat(partition, runs, sequence, positions))
            else:
                partition.found(runs, sequence, position)
                partition.prove(epoch)
            self._placed(partition, standing.found, False)

        def attempt() -> None:
            self._compare(partition, sequence - 1, copied_at, left[0] - 1, decide)

        copied_at = destination_offset(covering(runs, sequence - 1), sequence - 1)
        attempt()

    def _repeat(self, partition: Partition, runs: Sequence[Run], sequence: int, positions: Sequence[int]) -> int:
        """Where to go on when no record tells: rather copy some again than skip any. Compaction by key makes it good."""
        checkpoints = [run.sequence_end for run in runs if run.sequence_base <= run.sequence_end <= sequence]
        checkpoint = max(checkpoints, default=runs[0].sequence_base)
        safe = min(*positions, locate(runs, checkpoint)) if partition.policy.source_compacted else min(positions)
        partition.recopied += max(0, positions[0] - safe)
        return safe

    def verify(self, partition: Partition, decided: Decide) -> None:
        """Find out whether the last record that was copied is at its place in the source still."""
        generation = partition.generation

        def decide(epoch: int | None) -> None:
            if partition.generation == generation and not partition.retired:
                decided(epoch)

        last = partition.acked_sequence - 1
        self._compare(partition, last, last + partition.shift, partition.copied_to - 1, decide)

    def _compare(self, partition: Partition, last: int, copied_at: int, source_at: int, decide: Decide) -> None:
        failed = self._unless_settled(partition, "the last record")
        source = self._source.channel(self._source.leader(partition.topic, partition.number).node)
        destination = self._destination.prompt_channel(partition.destination_node)
        if source is None:
            failed(_NO_SOURCE, "the source's leader cannot be reached")
        elif destination is None:
            failed(_NO_DESTINATION, "the destination's leader cannot be reached")
        else:
            shared = partition.policy.on_foreign == "expect"  # the map then knows the place of checkpoints only
            among = (self._producer_id, wire_sequence(last)) if shared else None
            Verification(partition, copied_at, source_at, decide, failed, among).start(source, destination)

    def _unless_settled(self, partition: Partition, what: str) -> Failed:
        """Look again if ``what`` cannot be read, unless the partition was doubted or given away meanwhile."""
        generation = partition.generation

        def failed(answer: codes.Answer, cause: str) -> None:
            if partition.generation == generation and not partition.retired:
                self._again(partition, answer, f"looking up {what}: {cause}")

        return failed

    def runs_of(self, partition: Partition) -> Sequence[Run]:
        """The runs for exactly these two topics; where there are none and the policy lets a source topic that was made
        anew be copied, those of its predecessor, which still say how far the destination is."""
        source_id, destination_id = topic_id_text(partition.source_id), topic_id_text(partition.destination_id)
        into = [
            run
            for run in self._known.runs.get((partition.topic, partition.number), ())
            if run.destination_id == destination_id and run.destination == partition.destination
        ]
        own = [run for run in into if run.source_id == source_id]
        return own or (into if partition.policy.on_loss != "halt" else ())


def with_what_was_acknowledged(partition: Partition, found: recovery.Found) -> recovery.Found:
    """What this slot itself knows to be acknowledged is lost too where it is no more: no checkpoint may say so yet. What was
    only found in the log does not count, since its followers may not have had it."""
    if not partition.found_sequence < partition.acked_sequence > found.sequence:
        return found
    start, end = found.lost or (found.sequence + partition.shift, 0)
    return found._replace(lost=(start, max(end, partition.expected_offset)))
