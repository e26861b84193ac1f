"""All errors that this package raises deliberately.

StraitError
├── ConfigError              a setting must be changed by the user; never retried; carries every problem found
├── SetupError               this machine lacks something: Java, cores, disk, a free port
├── ClusterError             a request to a Kafka cluster failed; carries the cluster's name
│   ├── ClusterUnavailable     retriable: brokers down, timeouts, leader changes
│   │   ├── OtherCluster         the address belongs to another cluster than the link's; ends when its own answers
│   │   └── OffsetsPending       a report or a log end that a translation of replicated offsets needs is still missing
│   ├── UnknownTopic           the cluster has no such topic, or not that partition of it
│   └── NotAuthorized          an operator must grant a permission or correct a credential
│       └── LoginRejected        the cluster rejects the credentials, so every request fails
├── StateError               a state topic has a record that this version cannot read; the last valid plan stays active
├── PlanConflict             another control plane published first; retriable: observe and plan again
├── OutdatedSettings         the settings may be older than the plan; an operator must confirm or correct them
├── ApprovalMissing          the changes are not approved, or differ from the approved ones; none of these was made
├── FailoverStopped          a check of a failover step failed; the record has the step and the changes that stay
│   ├── FailoverTakenOver     another process continues the failover
│   └── HookFailed            a command or DAG that the link's `failover.hooks` run during it failed
├── LaunchError              a Spark application could not be started, found or stopped
├── MeasurementError         a benchmark's result would be invalid: records missing, batches of another size
└── WireError                bytes that break Kafka's formats; never skipped silently
    ├── CorruptBatch           a record batch with an invalid length, magic or checksum
    └── ProtocolError          a response that does not match its request
        └── UnsupportedRequest   the broker does not serve a request, or not in a version that Strait supports

The text of every error names the component, the operation and the failure; ``hint`` names the action to take.
"""

from collections.abc import Sequence


class StraitError(Exception):
    """Base of all errors raised deliberately. ``hint`` is the user's next step, or empty."""

    retriable = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(StraitError):
    """The configuration is invalid. ``problems`` has one line for each correction to make."""

    def __init__(self, where: str, problems: Sequence[str], *, hint: str = "") -> None:
        self.where = where
        self.problems = tuple(problems)
        text = f" {problems[0]}" if len(problems) == 1 else "\n  " + "\n  ".join(problems)
        super().__init__(f"{where}:{text}", hint=hint)

    @property
    def in_one_line(self) -> str:
        return str(StraitError(f"{self.where}: {'; '.join(self.problems)}", hint=self.hint))


class SetupError(StraitError):
    """This machine lacks something that the command needs."""


class ClusterError(StraitError):
    """A Kafka cluster rejected a request, or the request failed. ``cluster`` is its name in the links file."""

    def __init__(self, cluster: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"cluster {cluster}: {message}", hint=hint)
        self.cluster = cluster


class ClusterUnavailable(ClusterError):
    """Brokers cannot be reached or did not respond in time; a retry may succeed."""

    retriable = True


class OtherCluster(ClusterUnavailable):
    """The address belongs to another Kafka cluster than the link's: nothing may be read, written or created there."""


class OffsetsPending(ClusterUnavailable):
    """The destination's offset for a replicated source offset cannot be determined yet."""


class UnknownTopic(ClusterError):
    """The cluster has no topic of this name, or no such partition of it."""


class NotAuthorized(ClusterError):
    """The cluster rejects these credentials, or this principal lacks a permission."""


class LoginRejected(NotAuthorized):
    """The cluster, or the endpoint that issues its tokens, rejects these credentials: no request can succeed."""


class StateError(StraitError):
    """A state topic holds a record that this version cannot read. It is not overwritten."""


class PlanConflict(StraitError):
    """Another control plane of the same link published a plan while this one was computing its own."""

    retriable = True


class OutdatedSettings(StraitError):
    """The settings differ from those of the current plan, and may be older. Nothing was published."""


class ApprovalMissing(StraitError):
    """The link may make only approved changes. ``unseen`` has one line for each unapproved change or difference."""

    def __init__(self, message: str, unseen: Sequence[str], *, hint: str = "") -> None:
        super().__init__("\n  ".join([message, *unseen]), hint=hint)
        self.unseen = tuple(unseen)


class FailoverStopped(StraitError):
    """A check of a failover step failed, so the following steps were not run."""


class FailoverTakenOver(FailoverStopped):
    """Another process has taken over the failover; this process must not revert any of its steps."""


class HookFailed(FailoverStopped):
    """A command or DAG of a failover hook could not be run, or failed; the message has its result."""


class LaunchError(StraitError):
    """A Spark application could not be started, found or stopped."""


class MeasurementError(StraitError):
    """A benchmark's result is invalid: the measurement does not cover the intended comparison."""


class WireError(StraitError):
    """Bytes that break Kafka's formats."""


class CorruptBatch(WireError):
    """A record batch with an invalid length, magic or checksum."""


class ProtocolError(WireError):
    """A response that does not match its request."""


class UnsupportedRequest(ProtocolError):
    """A broker does not serve a request that Strait needs, or only in other versions."""
