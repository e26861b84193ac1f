"""Responses of the page about a single link: a partition, its current plans, its applications, its quarantine. Pure."""

from collections.abc import Collection
from dataclasses import asdict
from itertools import zip_longest

from strait.exporter.observation import Observation
from strait.model import TopicPartition
from strait.planning.plan.pauses import Scope, pauses_of
from strait.planning.status.needs import late_topics
from strait.planning.status.status import SlotStatus, Status
from strait.planning.status.words import STATES, Badge, Level, of_slot
from strait.planning.topics.decisions import RESOLVABLE
from strait.state.quarantine_log import Entry
from strait.state.schema import OffsetMapping, Plan
from strait_airflow.page.views.answers import Data, looked, some
from strait_airflow.page.views.links import Now, link_row, partition_row, partition_rows
from strait_airflow.page.watches.polled import Runs, Seen

_LOSSES_SHOWN = 50
_RUNS_SHOWN = 50


def link_details(link: str, seen: Observation | None, now: Now) -> Data:
    """Return a link with its slots, losses, quarantine and the origin of its plans; partitions are paged separately."""
    found = link_row(link, seen, now)
    if seen is None or not found["known"]:
        return found
    return found | {
        "slots": [_slot(group, slot) for group in seen.statuses for slot in group.slots],
        "losses_newest": losses_of(seen, _LOSSES_SHOWN),
        "quarantine": dict(seen.quarantined),
        "pauses": [pause.model_dump(mode="json") for pause in pauses_of(seen.plans.values())],
        "resolvable": sorted(RESOLVABLE),
        "plans": [plan_facts(plan) for _, plan in sorted(seen.plans.items())],
    }


def _slot(group: Status, slot: SlotStatus) -> Data:
    badge = of_slot(slot, stopped=group.stopped).as_data()
    return {"group": group.group, **asdict(slot), "badge": badge, "silence": slot.silence if slot.silent else ""}


def partition_details(seen: Observation | None, topic: str, partition: int) -> Data | None:
    """Return a partition with its task group, policy, losses and pauses; None: no plan has it.

    If the link is unknown, the result has only `looking`, `error` and the age.
    """
    if seen is None or (seen.error and not seen.plans):
        error = "" if seen is None else seen.error
        return {"looking": seen is None, "error": error, "age_seconds": None, "every_seconds": None}
    place = TopicPartition(topic, partition)
    row = next((one for one in partition_rows(seen) if (one.topic, one.partition) == (topic, partition)), None)
    if row is None:
        return None
    copied = ((plan.group, one.policy) for plan in seen.plans.values() for one in plan.topics if one.source == topic)
    group, policy = next(copied, ("", None))
    losses = [one for one in losses_of(seen) if (one["topic"], one["partition"]) == (topic, partition)]
    pauses = [pause for pause in pauses_of(seen.plans.values()) if Scope.of(pause).covers(place)]
    return partition_row(row, late_topics(seen.needs)) | {
        "group": group,
        "policy": None if policy is None else policy.model_dump(mode="json", exclude_defaults=True),
        "losses": losses,
        "losses_not_kept": max(0, sum(seen.loss_counts.values()) - len(seen.losses)),
        "pauses": [pause.model_dump(mode="json") for pause in pauses],
    }


def losses_of(seen: Observation, most: int | None = None) -> list[Data]:
    """Return the newest losses first, each with the operator, time and reason of its acknowledgement, as
    `acknowledged`; null: it is new."""
    pairs = list(zip_longest(seen.losses, seen.loss_acknowledgements))[::-1][:most]
    return [
        loss.model_dump(mode="json")
        | {"acknowledged": None if said is None else said.model_dump(mode="json", include={"by", "at_ms", "reason"})}
        for loss, said in pairs
    ]


def partition_runs(seen: Seen[Runs] | None, topic: str, partition: int) -> Data:
    """Return a partition's offset segments, newest first. A recreated source topic is another generation."""
    runs = () if seen is None else seen.found.get((topic, partition), ())
    generations = {source: number for number, source in enumerate(dict.fromkeys(run.source_id for run in runs), 1)}
    return looked(seen) | {
        "total": len(runs),
        "rows": [_run(run, generations[run.source_id]) for run in runs[: -_RUNS_SHOWN - 1 : -1]],
    }


def plan_facts(plan: Plan) -> Data:
    """Return key figures of a current plan, and the origin of its settings."""
    settings = plan.settings
    return {
        "group": plan.group,
        "version": plan.version,
        "stopped": plan.stopped,
        "published_at_ms": plan.published_at_ms,
        "slots": plan.slots,
        "topics": len(plan.topics),
        "waiting": len(plan.waiting),
        "budgets": [{"topic_class": one.topic_class, "bytes_per_second": one.bytes_per_second} for one in plan.budgets],
        "backfill": "" if plan.backfill is None else plan.backfill.described,
        "consumer_groups": None if plan.consumer_groups is None else list(plan.consumer_groups.include),
        "origins": {} if settings is None else dict(settings.origins),
        "topics_block": "" if settings is None else settings.topics,
    }


def applications_view(seen: Seen[tuple[Data, ...]] | None, link: Observation | None, *, logs: bool) -> Data:
    """Return a link's applications; without log lines, and names of links that share them, if the user may not read their
    ``logs``."""
    found = () if seen is None else seen.found
    silent = set() if link is None else {group.group for group in link.statuses if _is_silent(group)}
    shown = [one | {"badge": _application_badge(one, silent).as_data()} for one in found]
    return looked(seen) | {
        "logs": logs,
        "applications": [one if logs else one | {"log_lines": [], "links": []} for one in shown],
    }


def _is_silent(group: Status) -> bool:
    return not group.stopped and any(slot.silent and not slot.starting for slot in group.slots)


def _application_badge(one: Data, silent: Collection[str]) -> Badge:
    """Return the state of an application. One that runs while a slot of it does not report is not well."""
    badge = STATES[one["submissions"][0]["state"]]
    is_mute = one["group"] in silent if one["group"] else bool(silent)
    mute = badge.level is Level.GOOD and not one["standby"] and is_mute
    return STATES["silent"] if mute else badge


def quarantine_page(seen: Seen[tuple[Entry, ...]] | None, *, search: str, offset: int, limit: int) -> Data:
    """Return one page of the unresolved records, newest first."""
    found = [] if seen is None else [one for one in reversed(seen.found) if search.casefold() in one.topic.casefold()]
    return looked(seen) | {
        "total": len(found),
        "rows": [entry._asdict() for entry in some(found, offset, limit)],
    }


def _run(run: OffsetMapping, generation: int) -> Data:
    return {
        "generation": generation,
        "source_id": run.source_id,
        "source_base": run.source_base,
        "destination": run.destination,
        "destination_base": run.destination_base,
        "shared": run.shared,
        "confirmed": max(0, run.sequence_end - run.sequence_base),
        "checkpoint_at_ms": run.checkpoint_at_ms,
        "after_unknown": run.after_unknown,
    }
