"""The list of all reason codes, each with Strait's observation about a topic or partition and the remedy for it.

Reports, plans, metrics and tests carry the code, which never changes its meaning. The texts are for operators.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The action that a reason requires of the operator; each kind has its own table in the documentation."""

    INFORMATIONAL = "informational"  # the partition is copied; the reason is a note
    SKIPPED = "skipped"  # the configuration or an operator excludes it
    RETRIES = "retries"  # Strait retries with backoff, and copying resumes once the cause is removed
    NEEDS_DECISION = "needs_decision"  # continuing could copy wrongly or lose records; an operator chooses how


class Reason(StrEnum):
    """A reason code. ``meaning``, ``remedy`` and ``kind`` explain it."""

    NOT_SELECTED = "not_selected"
    EXCLUDED = "excluded"
    PAUSED = "paused"
    AWAITING_APPROVAL = "awaiting_approval"
    OUTSIDE_HOURS = "outside_hours"
    FINISHED = "finished"
    UNTIL_AHEAD = "until_ahead"
    LINK_STOPPED = "link_stopped"
    THROTTLED = "throttled"
    QUARANTINED = "quarantined"
    CAME_FROM_DESTINATION = "came_from_destination"
    NO_NAME = "no_name"
    OUTSIDE_SELECTION = "outside_selection"
    SOURCE_MISSING = "source_missing"
    DESTINATION_MISSING = "destination_missing"
    DESTINATION_HAS_FEWER_PARTITIONS = "destination_has_fewer_partitions"
    DESTINATION_LOG_APPEND_TIME = "destination_log_append_time"
    DESTINATION_DELETED = "destination_deleted"
    DESTINATION_RECREATED = "destination_recreated"
    SOURCE_RECREATED = "source_recreated"
    NAMING_CHANGED = "naming_changed"
    TRANSFORM_CHANGED = "transform_changed"
    TRANSFORM_UNSUPPORTED = "transform_unsupported"
    TRANSFORM_REFUSED = "transform_refused"
    TRANSFORM_STARTING = "transform_starting"
    TRANSFORM_SECRET_MISSING = "transform_secret_missing"  # noqa: S105
    START_OUT_OF_RANGE = "start_out_of_range"
    START_FORCED = "start_forced"
    TAIL_DROPPED = "tail_dropped"
    TAIL_COPIED = "tail_copied"
    SOURCE_TRUNCATED = "source_truncated"
    SOURCE_DATA_LOST = "source_data_lost"
    DESTINATION_TRUNCATED = "destination_truncated"
    DESTINATION_KEEPS_LESS = "destination_keeps_less"
    FOREIGN_WRITER = "foreign_writer"
    CORRUPT_BATCH = "corrupt_batch"
    MALFORMED_RECORD = "malformed_record"
    BATCH_TOO_LARGE = "batch_too_large"
    BATCH_REFUSED = "batch_refused"
    UNEXPECTED_ERROR = "unexpected_error"
    SOURCE_DENIED = "source_denied"
    DESTINATION_DENIED = "destination_denied"
    SOURCE_LEADERLESS = "source_leaderless"
    DESTINATION_LEADERLESS = "destination_leaderless"
    SOURCE_UNREACHABLE = "source_unreachable"
    DESTINATION_UNREACHABLE = "destination_unreachable"
    SOURCE_OTHER_CLUSTER = "source_other_cluster"
    DESTINATION_OTHER_CLUSTER = "destination_other_cluster"
    SOURCE_UNSUPPORTED = "source_unsupported"
    DESTINATION_UNSUPPORTED = "destination_unsupported"
    DESTINATION_NOT_ENOUGH_REPLICAS = "destination_not_enough_replicas"
    DESTINATION_DISK = "destination_disk"
    PRODUCERS_UNREADABLE = "producers_unreadable"
    ANOTHER_COPY = "another_copy"
    LOOKING_UP = "looking_up"
    OPEN_TRANSACTION = "open_transaction"
    POSITION_UNVERIFIED = "position_unverified"
    COPY_DIFFERS = "copy_differs"
    MAP_RUN_MISSING = "map_run_missing"
    PLAN_MISSING = "plan_missing"
    SLOT_SILENT = "slot_silent"
    APPLICATION_DEAD = "application_dead"

    @property
    def meaning(self) -> str:
        """Strait's observation and its consequence."""
        return _TEXTS[self].meaning

    @property
    def remedy(self) -> str:
        """A command, a setting or an ACL, and how copying resumes."""
        return _TEXTS[self].remedy

    @property
    def kind(self) -> Kind:
        """Whether the partition is copied, skipped, retried, or waits for a decision."""
        return _TEXTS[self].kind


INTENDED = frozenset({Reason.PAUSED, Reason.AWAITING_APPROVAL, Reason.OUTSIDE_HOURS, Reason.UNTIL_AHEAD})
"""Reasons of partitions that wait because an operator or the configuration wants it."""


@dataclass(frozen=True, slots=True)
class _Text:
    meaning: str
    remedy: str
    kind: Kind


_REPLICATE_AGAIN = (
    "Replicate again into another topic: `naming` of a new link. If this link is the destination topic's only producer, "
    "the topic may instead be recreated: set `on_loss: restart` for it, delete and recreate it, and run `strait run`, "
    "`strait apply` or the monitor DAG. Never delete a topic that other producers write to: their records would be lost."
)

_TEXTS = {
    # topics and partitions that the configuration or an operator excludes
    Reason.NOT_SELECTED: _Text(
        "No `topics.include` name or `topics.regex` pattern of the link selects this topic, so it is not copied.",
        "To copy it, add it to `topics.include` or `topics.regex`; copying starts with the next plan.",
        Kind.SKIPPED,
    ),
    Reason.EXCLUDED: _Text(
        "The topic is selected, but the rule in the detail excludes it: `topics.exclude`, or the rule for internal "
        "topics.",
        "To copy it, narrow `topics.exclude` or set `topics.internal: true`, whichever the detail names. Topics of "
        "Kafka and of Strait, and the link's own destination topics, are never copied.",
        Kind.SKIPPED,
    ),
    Reason.CAME_FROM_DESTINATION: _Text(
        "The topic's name starts with the destination's alias, or a link from the destination lists it as its own "
        "destination topic, so it came from there and is not copied back.",
        "No action is needed. If the topic is an original, set another `destination_alias` in a rule's `naming`. If it "
        "is to be copied back all the same, name it in `topics.include`.",
        Kind.SKIPPED,
    ),
    Reason.NO_NAME: _Text(
        "The link's `naming` gives the topic no destination name, one that Kafka does not allow or Strait reserves, or that of another "
        "topic, so it is not copied.",
        "Correct `naming` as the detail shows, or set `naming` in a rule for the topic; copying starts with the "
        "next plan.",
        Kind.SKIPPED,
    ),
    Reason.OUTSIDE_SELECTION: _Text(
        "The plan assigns the topic to a slot, but the application was not started for it, and the plan does not have the "
        "link's signature: another client may have published it. Nothing of the topic is read.",
        "If you have edited the selection, run the link's DAG or restart `strait run`, which restarts the application with "
        "it; with the same `state.key` on every host no restart is needed. Copying then starts automatically. If you have "
        "not, revoke the WRITE permission of other principals on `strait.<link>.plan`; the next plan replaces this one.",
        Kind.RETRIES,
    ),
    Reason.PAUSED: _Text(
        "An operator paused the link, the topic or the partition; the detail shows the operator, time and reason.",
        "Run `strait resume` with the scope shown in the detail. Copying resumes at the offset at which it stopped.",
        Kind.SKIPPED,
    ),
    Reason.LINK_STOPPED: _Text(
        "The link is stopped by `strait stop` or a failover; `strait status` shows the operator, time and reason.",
        "Run `strait start` to copy again. After a failover, run `strait tail list` first.",
        Kind.SKIPPED,
    ),
    Reason.AWAITING_APPROVAL: _Text(
        "The link has `approval: required`, and no operator has approved the change in the detail. Everything that needs no "
        "approval continues.",
        "Run `strait plan LINK --out plan.json`, review it, and run `strait apply plan.json`, also with `strait run`; in "
        "Airflow, answer the request of the DAG `strait_<link>_approval`. To drop the change, undo it, or exclude the topic.",
        Kind.SKIPPED,
    ),
    Reason.OUTSIDE_HOURS: _Text(
        "The backfill task group copies the partition, and copies only during the hours of `topics.budget.backfill`; the "
        "detail shows when they start.",
        "No action is needed. To copy it now, remove or extend `topics.budget.backfill.hours`.",
        Kind.SKIPPED,
    ),
    Reason.FINISHED: _Text(
        "The partition is copied up to the `until` of its rule, and nothing more of it is copied.",
        "No action is needed. To copy more, set a later `until`, or remove it: copying continues from that end.",
        Kind.SKIPPED,
    ),
    Reason.UNTIL_AHEAD: _Text(
        "The `until` of the topic's rule is a time that has not passed yet, so the source offset that ends replication is not known.",
        "No action is needed: copying starts once the time has passed. To copy continuously, remove `until`.",
        Kind.SKIPPED,
    ),
    # partitions that are copied, with a note
    Reason.THROTTLED: _Text(
        "The partition is copied, but the link, its class of topics or its backfill task group has reached its "
        "`topics.budget`.",
        "No action is needed. To catch up sooner, raise `topics.budget`.",
        Kind.INFORMATIONAL,
    ),
    Reason.QUARANTINED: _Text(
        "The partition is copied, except for records that the destination rejected, or that cannot be parsed: they are in the quarantine.",
        "Run `strait quarantine list` to see them, then `strait quarantine replay` or `strait quarantine drop`.",
        Kind.INFORMATIONAL,
    ),
    # topics that are missing or unfit
    Reason.SOURCE_MISSING: _Text(
        "The source has no topic of this name: it was deleted, never existed, or is hidden from this principal. If the link "
        "has copied it, the detail shows how many records, until when, and the topic that still has them.",
        "If it was deleted on purpose, take it out of `topics`; the destination topic stays, unless "
        "`delete_copies_after_seconds` is set. If it is hidden, grant DESCRIBE on it. If the name is wrong, correct "
        "`topics.include`. A topic that is created again starts automatically, or waits with `source_recreated`.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_MISSING: _Text(
        "The destination has no such topic, so nothing can be copied; the detail shows why it was not created.",
        "If the detail shows an authorization error, grant CREATE on the topic; any other error names its cause. If "
        "`create_topics` is false, create the topic with the source's partition count. Copying starts automatically.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_HAS_FEWER_PARTITIONS: _Text(
        "The destination topic has fewer partitions than the source; the missing ones are not copied.",
        "If the detail shows an authorization error, grant ALTER on the topic; any other error names its cause. If "
        "`create_topics` is false, add the missing partitions. Copying starts automatically.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_LOG_APPEND_TIME: _Text(
        "The destination topic has `message.timestamp.type=LogAppendTime`, so the source's timestamps would be lost.",
        "Set `message.timestamp.type=CreateTime` on the destination topic. Copying starts automatically.",
        Kind.RETRIES,
    ),
    # topics that are no longer the ones that were copied
    Reason.DESTINATION_DELETED: _Text(
        "The destination topic, into which the link has copied, was deleted, or is hidden from this principal. Nothing is "
        "created before a decision.",
        "If it is hidden, grant DESCRIBE on it. If it was deleted, run `strait resolve LINK TOPIC --continue` to create it "
        "and resume from the last confirmed record, or `--restart` to copy the source topic again from its first record.",
        Kind.NEEDS_DECISION,
    ),
    Reason.DESTINATION_RECREATED: _Text(
        "The destination topic was deleted and recreated: the records copied before are lost.",
        "Run `strait resolve LINK TOPIC --continue` to resume from the last confirmed record, or `--restart` to copy the "
        "source topic again from its first record. Set `on_loss` in a rule for the topic to have every such loss handled so.",
        Kind.NEEDS_DECISION,
    ),
    Reason.SOURCE_RECREATED: _Text(
        "The source topic was deleted and recreated: its offsets now belong to other records.",
        "Run `strait resolve LINK TOPIC --restart` to append the new topic's records, from the first one, after those "
        "already copied. Set `on_loss` in a rule for the topic to have every such loss handled so.",
        Kind.NEEDS_DECISION,
    ),
    Reason.NAMING_CHANGED: _Text(
        "The topic was copied to another destination topic; `naming` has changed since.",
        "Set `naming` back to its former value, and copying resumes; or use a new link for the new names.",
        Kind.NEEDS_DECISION,
    ),
    Reason.TRANSFORM_CHANGED: _Text(
        "The destination topic holds records that were made by another `transform`, or by none; nothing more is copied into "
        "it.",
        "Set the rule's `transform` back to its former value, and copying resumes. For the new one, copy into another topic: "
        "use a new link with another `naming`; or delete the destination topic, then run `strait resolve LINK TOPIC --restart`.",
        Kind.NEEDS_DECISION,
    ),
    Reason.TRANSFORM_UNSUPPORTED: _Text(
        "The topic cannot be transformed on the way, for the reason in the detail, so it is not copied.",
        "Remove `transform` from the topic's rule, or change the property of the topic that the detail names.",
        Kind.NEEDS_DECISION,
    ),
    Reason.TRANSFORM_REFUSED: _Text(
        "Spark does not accept an expression of the topic's `transform`, or its result is not a function of the record alone; "
        "nothing is copied.",
        "Correct the key of `transform` that the detail names, and check it with `strait plan LINK --preview TOPIC`. The topic then "
        "waits with `transform_changed`: delete the destination topic, which is empty, and run `strait resolve LINK TOPIC "
        "--restart`.",
        Kind.NEEDS_DECISION,
    ),
    Reason.TRANSFORM_SECRET_MISSING: _Text(
        "A file that `secrets` of the topic's `transform` names is missing, unreadable or empty on the slot's host; nothing is "
        "copied.",
        "Write the file that the detail names, as `transform.secrets` refers to it, on each host that runs slots, with its former "
        "content if it had one. Copying resumes automatically within 30 s.",
        Kind.RETRIES,
    ),
    Reason.TRANSFORM_STARTING: _Text(
        "The topic is transformed on the way, and Spark, which evaluates its expressions, is not there yet.",
        "No action is needed. Copying starts as soon as Spark has started.",
        Kind.RETRIES,
    ),
    Reason.START_OUT_OF_RANGE: _Text(
        "The source partition does not hold the offset that `start` names.",
        "Set `start` to an offset in the range that the detail shows, or to `earliest` or `latest`. Copying starts "
        "with the next plan.",
        Kind.NEEDS_DECISION,
    ),
    Reason.START_FORCED: _Text(
        "An operator forced the first source offset with `strait offsets import --force`, although the destination's "
        "records did not confirm it: some may be missing or duplicated. The loss log has the user and the reason.",
        "Compare both topics at the offset in `strait losses`. No other action is needed.",
        Kind.INFORMATIONAL,
    ),
    Reason.TAIL_DROPPED: _Text(
        "An operator dropped records with `strait tail drop`: the source holds them, and the link does not copy them. "
        "The loss log has the user and the reason.",
        "No action is needed. `strait losses` lists the offsets.",
        Kind.INFORMATIONAL,
    ),
    Reason.TAIL_COPIED: _Text(
        "An operator copied records with `strait tail copy` that this link had not replicated, from the destination of "
        "another link from the same source. The link does not replicate them again. The loss log has the user and the "
        "reason.",
        "No action is needed. `strait losses` lists the offsets.",
        Kind.INFORMATIONAL,
    ),
    Reason.SOURCE_TRUNCATED: _Text(
        "The source lost records that were already copied, so the destination holds records that the source does not.",
        "Check the source for an unclean leader election, the usual cause. Set `on_loss: continue` in a rule for "
        "the topic to resume at the source's end, or `on_loss: restart` to append the source's records again from "
        "the first one.",
        Kind.NEEDS_DECISION,
    ),
    Reason.SOURCE_DATA_LOST: _Text(
        "The source deleted records, by retention or on request, before they were copied.",
        "Set `on_loss: continue` in a rule for the topic to resume at the first record that is left. To prevent it, "
        "raise `slots` of the task group or `retention.ms` of the source topic.",
        Kind.NEEDS_DECISION,
    ),
    Reason.DESTINATION_TRUNCATED: _Text(
        "The destination lost acknowledged records, and Strait cannot determine where to continue.",
        _REPLICATE_AGAIN,
        Kind.NEEDS_DECISION,
    ),
    Reason.DESTINATION_KEEPS_LESS: _Text(
        "The destination topic deleted replicated records by its own retention or compaction, which the detail names; the "
        "source still holds them. The loss log has an entry for each partition at most once a week.",
        "Set the settings in the detail to the source's values on the destination topic, or `configs.sync: true`. No other "
        "action is needed if the destination is meant to keep less.",
        Kind.INFORMATIONAL,
    ),
    Reason.FOREIGN_WRITER: _Text(
        "Another producer wrote to the destination partition, so its offsets no longer follow the link's records.",
        "Remove other principals' WRITE permission, then set `on_foreign: continue` in a rule for the topic to "
        "accept the foreign records. If other producers are intended, set `on_foreign: expect`.",
        Kind.NEEDS_DECISION,
    ),
    # batches that cannot be copied
    Reason.CORRUPT_BATCH: _Text(
        "The batch at the offset in the detail fails its CRC or violates Kafka's format on the source; no later "
        "batch is copied.",
        "Move leadership to a replica with an intact copy (`kafka-leader-election.sh`); copying then resumes "
        "automatically. No setting skips a corrupt batch.",
        Kind.RETRIES,
    ),
    Reason.MALFORMED_RECORD: _Text(
        "The value of the record at the offset in the detail does not match the `format` of the topic's `transform`; no later "
        "record is copied.",
        "Set `malformed: quarantine` in the `transform`: the record's offset is then noted in the quarantine, without its "
        "content, and copying resumes automatically. If the detail names an unknown schema ID of Avro, add that schema to the `format`. "
        "If the `schema` is wrong, correct it and copy into another topic, see `transform_changed`.",
        Kind.NEEDS_DECISION,
    ),
    Reason.BATCH_TOO_LARGE: _Text(
        "A single record exceeds the destination topic's `max.message.bytes`; no later record is copied.",
        "Set `max.message.bytes` of the destination topic to the source's value, or set `on_refused: quarantine` in "
        "a rule for the topic. Copying resumes automatically.",
        Kind.RETRIES,
    ),
    Reason.BATCH_REFUSED: _Text(
        "The destination rejects a record because of its content, such as a timestamp out of bounds; no later "
        "record is copied.",
        "Change the destination topic's setting that the detail names, such as `message.timestamp.before.max.ms`, "
        "or set `on_refused: quarantine` in a rule for the topic.",
        Kind.NEEDS_DECISION,
    ),
    Reason.UNEXPECTED_ERROR: _Text(
        "A broker returned an error that Strait does not handle; the detail has Kafka's name for it. Strait retries.",
        "Check the broker's log for the error, then run `strait status`: copying resumes once the broker accepts "
        "the request.",
        Kind.RETRIES,
    ),
    # clusters that do not serve
    Reason.SOURCE_DENIED: _Text(
        "The source denies this principal access to the topic; the detail names the request that was denied.",
        "Grant READ and DESCRIBE_CONFIGS on the source topic; copying resumes automatically.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_DENIED: _Text(
        "The destination denies this principal access to the topic; the detail names the request that was denied.",
        "Grant WRITE, READ and DESCRIBE_CONFIGS on the destination topic; copying resumes automatically.",
        Kind.RETRIES,
    ),
    Reason.SOURCE_LEADERLESS: _Text(
        "The source partition has no leader, so it cannot be read.",
        "Start a broker that holds an in-sync replica; `kafka-topics.sh --describe` lists them. Copying resumes "
        "automatically.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_LEADERLESS: _Text(
        "The destination partition has no leader, so it cannot be written.",
        "Start a broker that holds an in-sync replica; `kafka-topics.sh --describe` lists them. Copying resumes "
        "automatically.",
        Kind.RETRIES,
    ),
    Reason.SOURCE_UNREACHABLE: _Text(
        "The slot cannot reach the leader of the source partition.",
        "Check that the slot's host can connect to the broker's `advertised.listeners` address. Copying resumes "
        "automatically.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_UNREACHABLE: _Text(
        "The slot cannot reach the leader of the destination partition.",
        "Check that the slot's host can connect to the broker's `advertised.listeners` address. Copying resumes "
        "automatically.",
        Kind.RETRIES,
    ),
    Reason.SOURCE_OTHER_CLUSTER: _Text(
        "Another Kafka cluster than the link's source answers at its address; the detail has both IDs. Nothing is read "
        "from it.",
        "Correct `bootstrap.servers`, DNS or the broker's port. Copying resumes automatically once the link's cluster "
        "answers. If the change is meant, set `cluster.id` of the source to the new ID.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_OTHER_CLUSTER: _Text(
        "Another Kafka cluster than the link's destination answers at its address; the detail has both IDs. Nothing is "
        "written to it.",
        "Correct `bootstrap.servers`, DNS or the broker's port. Copying resumes automatically once the link's cluster "
        "answers. If the change is meant, set `cluster.id` of the destination to the new ID.",
        Kind.RETRIES,
    ),
    Reason.SOURCE_UNSUPPORTED: _Text(
        "A broker of the source does not serve a request that Strait needs; the detail has its name.",
        "Run `strait validate --connect`, and upgrade the broker, or allow the request in the proxy or service that "
        "withholds it. Copying resumes automatically.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_UNSUPPORTED: _Text(
        "A broker of the destination does not serve a request that Strait needs; the detail has its name.",
        "Run `strait validate --connect`, and upgrade the broker, or allow the request in the proxy or service that "
        "withholds it. Copying resumes automatically.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_NOT_ENOUGH_REPLICAS: _Text(
        "The destination partition has fewer in-sync replicas than `min.insync.replicas`, so it accepts no records.",
        "Start the missing brokers; `kafka-topics.sh --describe --under-min-isr-partitions` lists the partitions. "
        "Copying resumes automatically.",
        Kind.RETRIES,
    ),
    Reason.DESTINATION_DISK: _Text(
        "The destination broker cannot write to its disk.",
        "Free space in the broker's `log.dirs` or replace the disk. Copying resumes automatically.",
        Kind.RETRIES,
    ),
    # Strait's own parts
    Reason.PRODUCERS_UNREADABLE: _Text(
        "The source's topic `strait.producers` was deleted or has a record that Strait cannot read, so it cannot "
        "distinguish records that links wrote from others.",
        "If it was deleted, the links into the source create it again when they plan next. If a newer version wrote the "
        "record, upgrade Strait. Otherwise write a tombstone with the same key to `strait.producers`. Copying resumes "
        "automatically.",
        Kind.RETRIES,
    ),
    Reason.ANOTHER_COPY: _Text(
        "Another instance of this link is writing records older than one hour; only one instance does so at a time.",
        "If you did not start two instances, stop one; each report in `strait.<link>.reports` has the "
        "`application`, `host` and `pid` of its instance. This one takes over when the other stops.",
        Kind.RETRIES,
    ),
    Reason.LOOKING_UP: _Text(
        "The state of the link's producer ID has expired on the destination, so the link reads the destination log "
        "to find its last record.",
        "No action is needed. Copying resumes when the log has been read; `strait status` shows the progress.",
        Kind.RETRIES,
    ),
    Reason.OPEN_TRANSACTION: _Text(
        "A transaction on the source has been open for more than 10 s. Its records and all records after it cannot be "
        "read before it ends, so the link has not caught up.",
        "The transaction ends when its producer commits or aborts it, or after the producer's "
        "`transaction.timeout.ms`; copying then resumes automatically. If the detail shows that it hangs, run "
        "`kafka-transactions.sh abort` on the source with the topic, the partition and the start offset.",
        Kind.RETRIES,
    ),
    Reason.POSITION_UNVERIFIED: _Text(
        "The records that would prove the position of the link are deleted on the source or the destination.",
        "Compare both topics. Then set `on_loss: restart` in a rule for the topic to copy again from the last "
        "checkpoint, about one minute of records. `on_loss: continue` resumes at the position in the offset map, or "
        "at the checkpoint if the map does not determine it.",
        Kind.NEEDS_DECISION,
    ),
    Reason.COPY_DIFFERS: _Text(
        "The last record in the destination is not the source record that the link's offset map names.",
        "Check which topic was changed. Then set `on_loss: restart` in a rule for the topic to copy again from the "
        "last checkpoint, or `on_loss: continue` to resume at the position in the offset map.",
        Kind.NEEDS_DECISION,
    ),
    Reason.MAP_RUN_MISSING: _Text(
        "The destination holds records of this link, but the offset map does not have their source offsets, so "
        "Strait cannot determine where to continue.",
        "Run `strait stop`, then `strait map rebuild`: it restores the offset map from the records of both clusters. "
        "Copying resumes after `strait start`. If the partition cannot be rebuilt, "
        + _REPLICATE_AGAIN.replace("Replicate", "replicate", 1),
        Kind.NEEDS_DECISION,
    ),
    Reason.PLAN_MISSING: _Text(
        "No plan has been published for the task group, so nothing is copied.",
        "Run `strait apply`, the monitor DAG or `strait run`; slots start as soon as the plan is published.",
        Kind.RETRIES,
    ),
    Reason.SLOT_SILENT: _Text(
        "The slot that copies the partition has not reported for more than 5 s, so its lag and its end are unknown.",
        "Spark restarts a failed slot. If no report arrives for 30 s (240 s in a cluster), the monitor DAG or `strait run` "
        "restarts the application; that of a pool only if no slot of the pool reports. If it lasts, read the application's "
        "log or the output of `strait run`.",
        Kind.RETRIES,
    ),
    Reason.APPLICATION_DEAD: _Text(
        "The Spark application of the task group has exited, so its topics are not copied.",
        "Airflow: the monitor DAG resubmits it; the `submit` task log shows the cause. `strait run`: it "
        "restarts automatically; its output shows the cause.",
        Kind.RETRIES,
    ),
}
