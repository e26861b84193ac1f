"""Every reason why something is not copied: its code, what it means and what to do. The only list of them.

A code is what reports, plans, metrics and tests carry; it never changes its meaning. The texts are for people.
"""

from dataclasses import dataclass
from enum import StrEnum


class Ends(StrEnum):
    """What has to happen before copying goes on."""

    BY_ITSELF = "by_itself"  # Strait looks again, with back-off, and goes on once the cause is gone
    BY_DECISION = (
        "by_decision"  # refused: going on would copy wrongly or lose records; a person or a later version decides
    )


class Reason(StrEnum):
    """A reason code. ``meaning``, ``remedy`` and ``ends`` explain it."""

    NOT_SELECTED = "not_selected"
    EXCLUDED = "excluded"
    PAUSED = "paused"
    THROTTLED = "throttled"
    QUARANTINED = "quarantined"
    CAME_FROM_DESTINATION = "came_from_destination"
    NO_NAME = "no_name"
    SOURCE_MISSING = "source_missing"
    DESTINATION_MISSING = "destination_missing"
    DESTINATION_HAS_FEWER_PARTITIONS = "destination_has_fewer_partitions"
    DESTINATION_LOG_APPEND_TIME = "destination_log_append_time"
    DESTINATION_RECREATED = "destination_recreated"
    SOURCE_RECREATED = "source_recreated"
    NAMING_CHANGED = "naming_changed"
    START_OUT_OF_RANGE = "start_out_of_range"
    SOURCE_TRUNCATED = "source_truncated"
    SOURCE_DATA_LOST = "source_data_lost"
    DESTINATION_TRUNCATED = "destination_truncated"
    FOREIGN_WRITER = "foreign_writer"
    CORRUPT_BATCH = "corrupt_batch"
    BATCH_TOO_LARGE = "batch_too_large"
    BATCH_REFUSED = "batch_refused"
    SOURCE_DENIED = "source_denied"
    DESTINATION_DENIED = "destination_denied"
    SOURCE_LEADERLESS = "source_leaderless"
    DESTINATION_LEADERLESS = "destination_leaderless"
    SOURCE_UNREACHABLE = "source_unreachable"
    DESTINATION_UNREACHABLE = "destination_unreachable"
    DESTINATION_NOT_ENOUGH_REPLICAS = "destination_not_enough_replicas"
    DESTINATION_DISK = "destination_disk"
    PRODUCERS_UNREADABLE = "producers_unreadable"
    ANOTHER_COPY = "another_copy"
    LOOKING_UP = "looking_up"
    POSITION_UNVERIFIED = "position_unverified"
    COPY_DIFFERS = "copy_differs"
    MAP_RUN_MISSING = "map_run_missing"
    PLAN_MISSING = "plan_missing"
    SLOT_SILENT = "slot_silent"
    APPLICATION_DEAD = "application_dead"

    @property
    def meaning(self) -> str:
        """What was found, in one sentence."""
        return _TEXTS[self].meaning

    @property
    def remedy(self) -> str:
        """What to do about it, in one sentence."""
        return _TEXTS[self].remedy

    @property
    def ends(self) -> Ends:
        """Whether copying goes on once the cause is gone, or only after a decision."""
        return _TEXTS[self].ends


@dataclass(frozen=True, slots=True)
class _Text:
    meaning: str
    remedy: str
    ends: Ends


_ITSELF, _DECISION = Ends.BY_ITSELF, Ends.BY_DECISION

_TEXTS = {
    # what is to be copied
    Reason.NOT_SELECTED: _Text(
        "No name or regular expression of the link selects this topic.",
        "Add it to `topics.include` or `topics.regex` if it should be copied.",
        _DECISION,
    ),
    Reason.EXCLUDED: _Text(
        "The topic is selected, but `topics.exclude` or a rule for internal topics leaves it out.",
        "Narrow `topics.exclude`, or set `topics.internal`; Kafka's and Strait's own topics are never copied.",
        _DECISION,
    ),
    Reason.CAME_FROM_DESTINATION: _Text(
        "The topic's name has the destination's alias in front: it came from there, and is not copied back.",
        "Nothing is wrong; if the topic is no copy, give its rule another `naming` or `destination_alias`.",
        _DECISION,
    ),
    Reason.NO_NAME: _Text(
        "The link's `naming` gives the copy no name, or one that Kafka refuses.",
        "Read the detail and correct `naming`, or give the topic a rule with its own.",
        _DECISION,
    ),
    Reason.PAUSED: _Text(
        "Somebody has paused the link, the topic or the partition; the detail says who, when and why.",
        "`strait resume` goes on exactly where copying stopped.",
        _DECISION,
    ),
    Reason.THROTTLED: _Text(
        "The partition is copied, but no faster than `budget` lets the link or its class of topics write.",
        "Nothing has to be done; a larger `topics.budget` lets it catch up sooner.",
        _ITSELF,
    ),
    Reason.QUARANTINED: _Text(
        "The partition is copied, but for records that the destination refused: they are kept aside.",
        "See what they are with `strait quarantine list`, then replay them elsewhere or drop them.",
        _ITSELF,
    ),
    # topics that are not there, or not fit
    Reason.SOURCE_MISSING: _Text(
        "The source has no topic of this name.",
        "Create it, grant DESCRIBE on it, or correct the name; it is copied as soon as it is seen.",
        _ITSELF,
    ),
    Reason.DESTINATION_MISSING: _Text(
        "The destination has no such topic, and it could not be created or the link is not to create it.",
        "Create it with the source's number of partitions, or set `create_topics`; copying then starts by itself.",
        _ITSELF,
    ),
    Reason.DESTINATION_HAS_FEWER_PARTITIONS: _Text(
        "The destination topic has fewer partitions than the source; those it lacks are not copied.",
        "Add partitions to the destination topic, or set `create_topics`; copying of the rest then starts by itself.",
        _ITSELF,
    ),
    Reason.DESTINATION_LOG_APPEND_TIME: _Text(
        "The destination topic stamps records with its own clock, so the source's timestamps would be lost.",
        "Set `message.timestamp.type=CreateTime` on the destination topic.",
        _ITSELF,
    ),
    # the ground has changed
    Reason.DESTINATION_RECREATED: _Text(
        "The destination topic was deleted and created again: what was copied before is gone.",
        "Say by a rule with `on_loss` whether to copy into the new topic, and from where; see docs/operating.md.",
        _DECISION,
    ),
    Reason.SOURCE_RECREATED: _Text(
        "The source topic was deleted and created again: its offsets now mean other records.",
        "Say by a rule with `on_loss` that the new topic is to be copied behind the old one; see docs/operating.md.",
        _DECISION,
    ),
    Reason.NAMING_CHANGED: _Text(
        "The topic was copied under another destination name; the link's `naming` has been changed since.",
        "Put `naming` back, or use a new link for the new names.",
        _DECISION,
    ),
    Reason.START_OUT_OF_RANGE: _Text(
        "`start` names an offset that the source partition does not hold.",
        "Name one that it holds, or `earliest` or `latest`; the next plan begins with it.",
        _DECISION,
    ),
    Reason.SOURCE_TRUNCATED: _Text(
        "The source lost records that were already copied, so the destination holds more than the source.",
        "Find out why (an unclean leader election is the usual cause), then say by a rule with `on_loss` how to go on.",
        _DECISION,
    ),
    Reason.SOURCE_DATA_LOST: _Text(
        "Retention or deletion on the source removed records before they were copied.",
        "Give the link more slots or the topic more retention, then say by a rule with `on_loss` how to go on.",
        _DECISION,
    ),
    Reason.DESTINATION_TRUNCATED: _Text(
        "The destination lost records that it had acknowledged.",
        "Find out why (an unclean leader election is the usual cause) and decide whether to copy them again.",
        _DECISION,
    ),
    Reason.FOREIGN_WRITER: _Text(
        "Somebody else writes into the destination partition; its offsets no longer follow the copy's.",
        "Take the right to write there away from everybody but the link; or, where others write by design, "
        "`on_foreign: expect`.",
        _DECISION,
    ),
    # batches that cannot be copied
    Reason.CORRUPT_BATCH: _Text(
        "A batch as the source delivers it breaks Kafka's format or fails its checksum.",
        "Check the disk of the source's leader and its replicas; nothing is copied past this batch.",
        _DECISION,
    ),
    Reason.BATCH_TOO_LARGE: _Text(
        "A batch is larger than the destination topic takes.",
        "Raise `max.message.bytes` of the destination topic to the source's value; copying then goes on by itself.",
        _ITSELF,
    ),
    Reason.BATCH_REFUSED: _Text(
        "The destination refuses a batch for what is in it, such as a timestamp out of its bounds.",
        "Read the detail, then change the destination topic's settings, or set `on_refused: quarantine` for the topic.",
        _DECISION,
    ),
    # clusters that do not serve
    Reason.SOURCE_DENIED: _Text(
        "The source does not let this principal read the topic.",
        "Grant READ and DESCRIBE on it; docs/security.md lists every right.",
        _ITSELF,
    ),
    Reason.DESTINATION_DENIED: _Text(
        "The destination does not let this principal write the topic.",
        "Grant WRITE, READ and DESCRIBE on it; docs/security.md lists every right.",
        _ITSELF,
    ),
    Reason.SOURCE_LEADERLESS: _Text(
        "The source partition has no leader.", "Bring one of its replicas back; copying then goes on.", _ITSELF
    ),
    Reason.DESTINATION_LEADERLESS: _Text(
        "The destination partition has no leader.", "Bring one of its replicas back; copying then goes on.", _ITSELF
    ),
    Reason.SOURCE_UNREACHABLE: _Text(
        "The partition's leader on the source cannot be reached.",
        "Check that the slot's host reaches the address that the broker advertises.",
        _ITSELF,
    ),
    Reason.DESTINATION_UNREACHABLE: _Text(
        "The partition's leader on the destination cannot be reached.",
        "Check that the slot's host reaches the address that the broker advertises.",
        _ITSELF,
    ),
    Reason.DESTINATION_NOT_ENOUGH_REPLICAS: _Text(
        "Fewer replicas of the destination partition are in sync than `min.insync.replicas` asks for.",
        "Bring the missing brokers back.",
        _ITSELF,
    ),
    Reason.DESTINATION_DISK: _Text(
        "The destination broker cannot write to its disk.", "Free or replace the disk of that broker.", _ITSELF
    ),
    # Strait's own parts
    Reason.PRODUCERS_UNREADABLE: _Text(
        "The source's topic strait.producers holds a record that cannot be read, so copies cannot be told from other "
        "records.",
        "Upgrade Strait if a newer one wrote it, else write a good record or a tombstone under the same key.",
        _ITSELF,
    ),
    Reason.ANOTHER_COPY: _Text(
        "Another slot or application of this link writes the partition, and records this old are sent by only one.",
        "Nothing is wrong with the copy; find out why two run, and end one. This one goes on when the other stops.",
        _ITSELF,
    ),
    Reason.LOOKING_UP: _Text(
        "The destination's broker has forgotten the link's producer ID, so the link reads the copy's log to find its "
        "last record.",
        "Nothing has to be done: copying starts when the log is read. The detail shows how far it is.",
        _ITSELF,
    ),
    Reason.POSITION_UNVERIFIED: _Text(
        "Neither the broker nor the log proves how many records were copied: the last ones are deleted on one side.",
        "Compare both topics, then set `on_loss: restart` or `continue` in a rule for the topic; `docs/operating.md` "
        "says what "
        "each copies again.",
        _DECISION,
    ),
    Reason.COPY_DIFFERS: _Text(
        "The last record of the copy is not the source record that the link's map names.",
        "Find out which topic was changed, then set `on_loss: continue` or `restart` in a rule for the topic, or "
        "copy it into a "
        "new destination topic.",
        _DECISION,
    ),
    Reason.MAP_RUN_MISSING: _Text(
        "The destination holds records of this link, but the map does not say where they come from.",
        "Restore the link's map topic, or copy into a new destination topic; going on would guess.",
        _DECISION,
    ),
    Reason.PLAN_MISSING: _Text(
        "No plan has been published for the task group yet.",
        "Run the monitor DAG or `strait apply`; the slot starts as soon as the plan is there.",
        _ITSELF,
    ),
    Reason.SLOT_SILENT: _Text(
        "The slot that should copy the partition has not reported for a while.",
        "Look at the Spark application's log; Spark starts a failed slot again by itself.",
        _ITSELF,
    ),
    Reason.APPLICATION_DEAD: _Text(
        "The Spark application of the task group does not run.",
        "The next run of the monitor DAG submits it again; its task log has the cause.",
        _ITSELF,
    ),
}
