"""Operators for any DAG. They call the same functions as `strait` and Strait's own DAGs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from strait_airflow.given import texts
from strait_airflow.page_address import PageButton
from strait_airflow.steps import quiet

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class _LinkOperator(BaseOperator):
    """Acts on one link, on behalf of the user that triggered the run; else of the DAG."""

    template_fields: Sequence[str] = ("link",)
    operator_extra_links = (PageButton(),)

    def __init__(self, *, link: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.link = link

    def pre_execute(self, context: Any) -> None:
        """Prepare the logs of the task."""
        quiet()


class StraitApplyOperator(_LinkOperator):
    """Plans a link and publishes the plan, as `strait apply`. Fails, and can be retried, if a part of it waits for
    approval or was rejected by a cluster."""

    def execute(self, context: "Context") -> str:
        from strait_airflow.control import apply
        from strait_airflow.errors import airflow_errors, raise_for
        from strait_airflow.steps import begin, last

        begin(self.link)
        with airflow_errors(self.link):
            line, everything = apply(self.link)
        if not everything:
            raise_for(f"link {self.link}: not all of it is done: {line}", retriable=True)
        return last(line)


class StraitPauseOperator(_LinkOperator):
    """Pauses a link, a topic or a partition, as `strait pause`.

    Args:
        part: TOPIC or TOPIC:PARTITION; "": the whole link.
        reason: shown in `strait status`.
    """

    template_fields: Sequence[str] = ("link", "part", "reason")

    def __init__(self, *, part: str = "", reason: str = "", **arguments: Any) -> None:
        super().__init__(**arguments)
        self.part = part
        self.reason = reason

    def execute(self, context: "Context") -> str:
        from strait_airflow.pausing import change

        return change(self.link, "pause", self.part, self.reason, _by(context))


class StraitResumeOperator(_LinkOperator):
    """Resumes a link, a topic or a partition, as `strait resume`. Does nothing if that is not paused; fails if the plan has
    no such topic.

    Args:
        part: as it was paused.
    """

    template_fields: Sequence[str] = ("link", "part")

    def __init__(self, *, part: str = "", **arguments: Any) -> None:
        super().__init__(**arguments)
        self.part = part

    def execute(self, context: "Context") -> str:
        from strait.control.pausing import is_paused
        from strait.planning.plan.pauses import Scope
        from strait_airflow.errors import airflow_errors
        from strait_airflow.pausing import change
        from strait_airflow.settings import link_of

        with airflow_errors(self.link):
            scope, paused = is_paused(link_of(self.link), Scope.parse(self.part))
        if not paused:
            return f"link {self.link}: {scope} is not paused"
        return change(self.link, "resume", self.part, "", _by(context))


class StraitFailoverOperator(_LinkOperator):
    """Fails a link over to its destination, as `strait failover`. It occupies a worker until the failover ends; a retry
    continues it.

    Args:
        kind: `planned`, or `unplanned` if the source is lost.
        preview: only report the result of each check.
        topics, groups: a wave: only topics and consumer groups whose names match one of these expressions.
        fence: principals to deny WRITE on the source.
        even_if_source_answers: of an unplanned failover.
    """

    template_fields: Sequence[str] = ("link", "kind", "topics", "groups", "fence", "reason")

    def __init__(
        self,
        *,
        kind: str = "planned",
        preview: bool = False,
        topics: Sequence[str] | str = (),
        groups: Sequence[str] | str = (),
        fence: Sequence[str] | str = (),
        quiet_seconds: float = 10,
        timeout_minutes: float = 10,
        accept_inexact: bool = False,
        accept_tail: bool = False,
        accept_transformed: bool = False,
        include_moved: bool = False,
        even_if_source_answers: bool = False,
        reason: str = "",
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.kind = kind
        self.topics = topics
        self.groups = groups
        self.fence = fence
        self.reason = reason
        self.preview = preview
        self.limits = {"quiet_seconds": quiet_seconds, "timeout_minutes": timeout_minutes}
        self.accepted = {
            "accept_inexact": accept_inexact,
            "accept_tail": accept_tail,
            "accept_transformed": accept_transformed,
            "include_moved": include_moved,
            "even_if_source_answers": even_if_source_answers,
        }

    def execute(self, context: "Context") -> str:
        from strait_airflow.errors import raise_for
        from strait_airflow.failing_over import fail_over

        if self.kind not in ("planned", "unplanned"):
            raise_for(f"kind: {self.kind!r} is neither planned nor unplanned", retriable=False)
        asked = {
            "link": self.link,
            "kind": self.kind,
            "dry_run": self.preview,
            "topics": texts("topics", self.topics),
            "groups": texts("groups", self.groups),
            "fence": texts("fence", self.fence),
            "reason": self.reason,
            "unfence": False,
            **self.limits,
            **self.accepted,
        }
        return fail_over(asked, _by(context))


class StraitRehearsalOperator(_LinkOperator):
    """Rehearses a failover of a link, as `strait failover --rehearse`, without touching a client.

    Args:
        minimum_score: share of the steps that must hold, in percent; fails below it.
    """

    def __init__(self, *, minimum_score: int = 0, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.minimum_score = minimum_score

    def execute(self, context: "Context") -> str:
        from strait.planning.failover import summary
        from strait_airflow.errors import raise_for
        from strait_airflow.failing_over import rehearsed

        record = rehearsed(self.link, _by(context))
        if self.minimum_score and (record.score or 0) < self.minimum_score:
            raise_for(f"{summary(record)}; required: {self.minimum_score} %", retriable=False)
        return summary(record)


class StraitReplayQuarantineOperator(_LinkOperator):
    """Writes quarantined records to the destination again, as `strait quarantine replay`.

    Args:
        topic: only of this source topic; "": of all. ``partition``: only of this partition.
        reason: only those that were rejected for this reason code; "": any.
        to: topic to write into; "": the original destination topics.
        preview: only log them.
    """

    template_fields: Sequence[str] = ("link", "topic", "reason", "to")

    def __init__(
        self,
        *,
        topic: str = "",
        partition: int | None = None,
        reason: str = "",
        to: str = "",
        preview: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.topic = topic
        self.partition = partition
        self.reason = reason
        self.to = to
        self.preview = preview

    def execute(self, context: "Context") -> str:
        from strait_airflow.settling import settle

        chosen = {"topic": self.topic, "partition": self.partition, "reason": self.reason, "to": self.to}
        return settle({"link": self.link, "action": "replay", "dry_run": self.preview, **chosen}, _by(context))


class StraitAuditOperator(_LinkOperator):
    """Compares the contents of topics on both clusters, as `strait audit`, in a Spark application that ends with the
    task. A retry continues with the chunks that are not compared yet. Returns the verdict; fails on another one than
    `equal` and `explained`.

    Args:
        topics: source topics; none: all of the link.
        since, until: only records from this time on, and before this one, such as `{{ data_interval_start }}`.
        strong: compare by SHA-256, too.
        replicas: check the followers of each partition, too.
        sample: share of the chunks to compare.
        slots: number of chunks that are compared at the same time, each by one core.
        bytes_per_second: limit for reading each cluster; 0: none.
    """

    template_fields: Sequence[str] = ("link", "topics", "since", "until")

    def __init__(
        self,
        *,
        topics: Sequence[str] | str = (),
        since: str = "",
        until: str = "",
        strong: bool = False,
        replicas: bool = False,
        sample: float = 1.0,
        slots: int = 1,
        bytes_per_second: int = 0,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.topics = topics
        self.since = since
        self.until = until
        self.strong = strong
        self.replicas = replicas
        self.sample = sample
        self.slots = slots
        self.bytes_per_second = bytes_per_second
        self._killed = False

    def execute(self, context: "Context") -> dict[str, Any]:
        from strait.config.audit import AuditRequest
        from strait.planning.status.up_to import UpTo
        from strait_airflow.auditing import audit_id, run_audit
        from strait_airflow.errors import airflow_errors, raise_for

        id_ = audit_id(self.link, context["ti"])
        with airflow_errors(self.link):
            request = AuditRequest(
                topics=tuple(texts("topics", self.topics)),
                strong=self.strong,
                replicas=self.replicas,
                sample=self.sample,
                since_ms=UpTo.parse(self.since).at_ms if self.since else None,
                until_ms=UpTo.parse(self.until).at_ms if self.until else None,
                bytes_per_second=self.bytes_per_second,
            )
            ended = run_audit(self.link, request, id_, self.slots, lambda: self._killed)
        if ended is None:
            raise_for(f"audit {id_}: ended before all chunks were compared; a retry continues it", retriable=True)
        if not ended.holds:
            verdict = ended.verdict or "its verdict is not known on this host"
            raise_for(f"link {self.link}: audit {id_}: {verdict}; see {ended.directory}", retriable=False)
        return {"audit": id_, "verdict": ended.verdict, "directory": ended.directory}

    def on_kill(self) -> None:
        """Let the application end in order."""
        self._killed = True


def _by(context: "Context") -> str:
    run = context["dag_run"]
    return getattr(run, "triggering_user_name", None) or f"DAG {run.dag_id}"
