"""Reading what the slots of a link have reported for a day."""

from pathlib import Path

from endurance.aged_slot import AgedSlot
from endurance.brokers import running
from endurance.compressed_time import Clock, CompressedCluster
from endurance.processes import Cost
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes

_MOST_SECONDS = 5.0
_MOST_MB = 300.0
_UNHEARD = "unheard"


def reports(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """One partition more is planned that no slot has ever reported: a failover looks for it as far back as reports go."""
    behind_seconds = sizes.report_minutes * 60
    source, destination = (CompressedCluster(folder / side, behind_seconds) for side in ("source", "destination"))
    with running(source, destination):
        clock = Clock(behind_seconds, source, destination)
        link = RigLink("reports", source, destination, folder, sizes.topics("reports") | {_UNHEARD: 1})
        link.begin()
        with clock.in_force(), AgedSlot(link, clock, sizes.seed, without=_UNHEARD) as slot:
            for minute in range(sizes.report_minutes):
                slot.copy_minute(reporting=True)
                if (minute + 1) % max(1, sizes.report_minutes // 10) == 0:
                    say(f"{minute + 1} of {sizes.report_minutes} minutes reported")
        size_mb, records = link.state_bytes("reports") / 1e6, link.state_records("reports")
        page, failover = (link.module("endurance.reports_read", who) for who in ("page", "failover"))
    return [
        Finding("reports on disk", size_mb, "MB"),
        Finding("reports, records", records, "records"),
        *_read("read by the page", page),
        *_read("read by a failover", failover),
    ]


def _read(what: str, cost: Cost) -> list[Finding]:
    """``output`` says how much was found."""
    return [
        Finding(what, cost.seconds, "s", _MOST_SECONDS),
        Finding(f"{what}, CPU", cost.cpu_seconds, "s"),
        Finding(f"{what}, memory", cost.memory_mb, "MB", _MOST_MB),
        Finding(f"{what}, found", float(cost.check().output), "", 1, at_least=True),
    ]
