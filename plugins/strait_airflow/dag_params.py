"""The Params of the DAGs that act on any link. Cheap to import, as the DAG file does it whenever it is parsed."""

from airflow.sdk import Param

Params = dict[str, Param]


def pause_params(links: tuple[str, ...]) -> Params:
    return {
        "link": Param(links[0], enum=list(links)),
        "action": Param(
            "pause",
            enum=["pause", "resume", "continue", "restart", "acknowledge"],
            description="continue, restart: decide about a topic that was deleted on one side; acknowledge: take note of "
            "losses.",
        ),
        "what": Param("", type="string", description="TOPIC or TOPIC:PARTITION; empty: the whole link."),
        "reason": Param("", type="string", description="Reason, shown in `strait status`."),
        "count": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            description="With acknowledge: losses that you have seen; none: all.",
        ),
    }


def quarantine_params(links: tuple[str, ...]) -> Params:
    return {
        "link": Param(links[0], enum=list(links)),
        "action": Param("replay", enum=["replay", "drop"]),
        "dry_run": Param(True, type="boolean", description="Only show the records."),
        "topic": Param("", type="string", description="Only of this source topic; empty: of all."),
        "partition": Param(None, type=["null", "integer"], minimum=0, description="Only of this partition."),
        "reason": Param("", type="string", description="Only those rejected for this reason code; empty: any."),
        "to": Param("", type="string", description="Topic to replay into; empty: where the records were to go."),
    }


def failover_params(links: tuple[str, ...]) -> Params:
    return {
        "link": Param(links[0], enum=list(links)),
        "kind": Param(
            "planned",
            enum=["planned", "unplanned", "rehearsal"],
            description="unplanned: the source is lost; rehearsal: with groups of other names, touching no client.",
        ),
        "dry_run": Param(True, type="boolean", description="Only show what each step finds now."),
        "topics": Param(
            [],
            type="array",
            items={"type": "string"},
            description="A wave: only topics whose name matches one of these expressions, with their groups.",
        ),
        "groups": Param(
            [],
            type="array",
            items={"type": "string"},
            description="Of the groups with offsets in them only these.",
        ),
        "fence": Param([], type="array", items={"type": "string"}, description="Principals to deny WRITE, by ACLs."),
        "quiet_seconds": Param(10, type="number", minimum=1, description="Without a write to the source."),
        "timeout_minutes": Param(10, type="number", minimum=0.1, maximum=30, description="For each step."),
        "accept_inexact": Param(False, type="boolean", description="Although groups would not continue exactly."),
        "accept_tail": Param(False, type="boolean", description="Although the reverse link is behind."),
        "accept_transformed": Param(False, type="boolean", description="Although a rule transforms records."),
        "include_moved": Param(False, type="boolean", description="Also groups that consumed there before."),
        "even_if_source_answers": Param(False, type="boolean", description="Of an unplanned failover."),
        "unfence": Param(False, type="boolean", description="Only remove the ACLs of the last failover."),
        "reason": Param("", type="string", description="Kept in the report."),
    }


def audit_params(links: tuple[str, ...]) -> Params:
    return {
        "link": Param("", enum=["", *links], description="Only this link; empty: all of them."),
        "topics": Param([], type="array", items={"type": "string"}, description="Source topics; none: all."),
        "sample": Param(0.05, type="number", minimum=0.0001, maximum=1, description="Share of the chunks."),
        "seed": Param("", type="string", description="Of the sample; empty: the date."),
        "strong": Param(False, type="boolean", description="Compare by SHA-256, too."),
        "replicas": Param(False, type="boolean", description="Check the followers of each partition, too."),
        "ledger": Param(False, type="boolean", description="Check the destination alone, by the replication ledger."),
        "budget": Param("20MB/s", type="string", description="Limit for reading each cluster; empty: none."),
        "slots": Param(
            1, type="integer", minimum=1, maximum=64, description="Chunks that are compared at the same time."
        ),
    }
