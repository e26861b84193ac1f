"""Every scenario by its name."""

from endurance.far_kill import far
from endurance.faults import faults
from endurance.idle_direction import idle_direction
from endurance.ledger_intervals import ledger
from endurance.many_begin import begin
from endurance.reports_day import reports
from endurance.rot import rot
from endurance.scenario import Scenario, Sizes
from endurance.starvation import starvation
from endurance.trickle import fetched, trickle
from endurance.weeks import upgrade, weeks

SCENARIOS = {
    "weeks": Scenario(
        "state after weeks of copying, next to an empty link",
        Sizes(weeks=4, partitions=1000, report_minutes=60),
        weeks,
        ("weeks", "partitions", "report_minutes", "seconds"),
    ),
    "upgrade": Scenario(
        "state that an early checkout left, next to an empty link",
        Sizes(weeks=0.1, partitions=1000),
        upgrade,
        ("weeks", "partitions", "seconds"),
    ),
    "begin": Scenario(
        "a broker's partitions begin, are copied, and every slot is killed",
        Sizes(partitions=20_000, per_topic=5, slots=2),
        begin,
        ("partitions", "per_topic", "slots"),
    ),
    "trickle": Scenario(
        "one partition trickles among idle ones in a slot",
        Sizes(partitions=10_000, seconds=60),
        trickle,
        ("partitions", "per_topic", "seconds"),
    ),
    "fetched": Scenario(
        "what a slot asks its source for while one partition trickles among idle ones",
        Sizes(partitions=10_000, seconds=10),
        fetched,
        ("partitions", "per_topic", "seconds"),
    ),
    "far": Scenario(
        "a slot of many partitions is killed, its source far away",
        Sizes(partitions=10_000),
        far,
        ("partitions", "per_topic", "round_trip_ms"),
    ),
    "starvation": Scenario(
        "five source brokers with a backlog and a live partition each, a slow destination",
        Sizes(partitions=4, megabytes=1200, seconds=60),
        starvation,
        ("partitions", "megabytes", "seconds"),
    ),
    "idle": Scenario(
        "the idle direction of a two-way link, while others write into its destination",
        Sizes(partitions=6, megabytes=1000, seconds=90),
        idle_direction,
        ("partitions", "megabytes", "seconds"),
    ),
    "reports": Scenario(
        "reading what slots have reported",
        Sizes(partitions=1000, report_minutes=24 * 60),
        reports,
        ("partitions", "report_minutes"),
    ),
    "ledger": Scenario(
        "latency through the application, with rows of the ledger every few seconds, without, and without any copier",
        Sizes(partitions=1, seconds=100, turns=4),
        ledger,
        ("seconds", "turns"),
    ),
    "rot": Scenario(
        "bits change on the disks of both clusters, and an audit names each",
        Sizes(partitions=25, turns=400),
        rot,
        ("partitions", "turns", "seed"),
    ),
    "faults": Scenario(
        "records that are missing, changed, doubled or exchanged on disks, and an audit names each",
        Sizes(partitions=25),
        faults,
        ("partitions",),
    ),
}
