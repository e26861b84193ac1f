"""Every error this package raises on purpose.

StraitError
├── ConfigError              a setting must be changed by the user; never retried; carries every problem found
├── SetupError               this machine lacks something: Java, cores, disk, a free port
├── ClusterError             a Kafka cluster did something; carries which cluster
│   ├── ClusterUnavailable     retriable: brokers down, time-outs, leaders moving
│   │   └── OtherCluster         an address answers as another cluster than the link's; over once its own is back
│   └── NotAuthorized          a person must grant a right or correct a credential
├── StateError               a state topic holds what this version cannot read; the last good plan stays in force
├── PlanConflict             another control plane published first; retriable: observe and plan again
├── ApprovalMissing          what would be done has not been approved, or is not what was; nothing was done
├── FailoverStopped          a step of a failover did not hold; the record of the failover says which, and what stays
│   ├── FailoverTakenOver     another process goes on with it
│   └── HookFailed            a command or DAG that a link's operators let run beside it
├── LaunchError              a Spark application could not be started, found or stopped
├── MeasurementError         a benchmark's numbers would mean nothing: records missing, batches of another size
└── WireError                bytes that break Kafka's formats; never skipped silently
    ├── CorruptBatch           a record batch whose length, magic or checksum cannot be right
    └── ProtocolError          a reply that is not what was asked for
        └── UnsupportedRequest   the broker does not serve a request, or not in a version that is spoken here

The text of every error reads: who, doing what, what happened; ``hint`` says what to do.
"""

from collections.abc import Sequence


class StraitError(Exception):
    """Base of all errors raised on purpose. ``hint`` tells the user the next step, or is empty."""

    retriable = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(StraitError):
    """The configuration is wrong. ``problems`` holds one line for each thing to change."""

    def __init__(self, where: str, problems: Sequence[str], *, hint: str = "") -> None:
        self.problems = tuple(problems)
        text = problems[0] if len(problems) == 1 else "\n  " + "\n  ".join(problems)
        super().__init__(f"{where}: {text}", hint=hint)


class SetupError(StraitError):
    """This machine lacks something that the command needs."""


class ClusterError(StraitError):
    """A Kafka cluster refused or failed a request. ``cluster`` is its name in the links file."""

    def __init__(self, cluster: str, message: str, *, hint: str = "") -> None:
        super().__init__(f"cluster {cluster}: {message}", hint=hint)
        self.cluster = cluster


class ClusterUnavailable(ClusterError):
    """Brokers cannot be reached or did not answer in time; trying again may help."""

    retriable = True


class OtherCluster(ClusterUnavailable):
    """Whoever answers is another Kafka cluster than the link's: nothing may be read, written or created there."""


class NotAuthorized(ClusterError):
    """The cluster refuses these credentials, or this principal lacks a right."""


class StateError(StraitError):
    """A state topic holds a record that this version cannot read. Nothing is written over it."""


class PlanConflict(StraitError):
    """Another control plane of the same link published while this one was deciding."""

    retriable = True


class ApprovalMissing(StraitError):
    """A link does what a person has seen, and nothing else. ``unseen`` holds one line for each thing in the way."""

    def __init__(self, message: str, unseen: Sequence[str], *, hint: str = "") -> None:
        super().__init__("\n  ".join([message, *unseen]), hint=hint)
        self.unseen = tuple(unseen)


class FailoverStopped(StraitError):
    """A step of a failover did not hold, so the steps after it were not taken."""


class FailoverTakenOver(FailoverStopped):
    """Another process has gone on with the failover; nothing of it is this one's to take back."""


class HookFailed(FailoverStopped):
    """A command or DAG that is run beside a failover could not be run, or failed; the text says what it did."""


class LaunchError(StraitError):
    """A Spark application could not be started, found or stopped."""


class MeasurementError(StraitError):
    """A benchmark cannot be judged: what was to be compared is not what was measured."""


class WireError(StraitError):
    """Bytes that break Kafka's formats."""


class CorruptBatch(WireError):
    """A record batch whose length, magic or checksum cannot be right."""


class ProtocolError(WireError):
    """A reply that does not follow from the request it answers."""


class UnsupportedRequest(ProtocolError):
    """A broker does not serve a request that is needed, or only in other versions."""
