"""Runs audits: submits the Spark application of one, follows it to its end, and returns its certificate.

The application ends with this process. If it dies, it is submitted again, and continues with the chunks that it has not
compared yet; so does a later command for the same audit. It is not submitted again if it reports that a cluster does not
answer, a permission is missing, or its files cannot be written: it has waited for that itself.
"""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from strait.audit.progress import AuditProgress, read_progress
from strait.audit.publishing import audits
from strait.config.app_spec import AppSpec
from strait.config.audit import AuditJob
from strait.config.cluster import Cluster
from strait.config.links import LinksFile, Spark
from strait.config.selecting import Selected
from strait.errors import ConfigError, LaunchError, SetupError
from strait.kafka.admin import Admin
from strait.launch.base import EXIT_CONFIG, Application, Launcher, State
from strait.launch.launchers import launcher_for
from strait.state.audit_records import Audit
from strait.state.signing import with_key

_POLL_SECONDS = 0.5
_MOST_SUBMISSIONS = 4
_MEMORY_BYTES = 64 << 20
_APPLICATIONS = "audit-applications"
GROUP = "audit"


@dataclass(frozen=True)
class AuditedClusters:
    """Both ends of an audit, by their names in the links file. ``link``: "" for copies that no link made."""

    link: str
    source: str
    destination: str


@dataclass(frozen=True)
class Ended:
    """An audit that has ended.

    Attributes:
        certificate: its certificate; None if its directory is not on this host.
        directory: the directory or URI of its results.
        verdict: of the certificate, or that the link's state has of it; "": unknown on this host.
        records: how many were compared; 0 if that is unknown.
    """

    id: str
    certificate: Mapping[str, Any] | None
    directory: str
    verdict: str
    records: int

    @classmethod
    def of(cls, id_: str, certificate: Mapping[str, Any], directory: str) -> Self:
        """Return an audit by its certificate."""
        body = certificate["body"]
        return cls(id_, certificate, directory, body["verdict"], body["records"])

    @property
    def holds(self) -> bool:
        """Whether everything was compared, and all differences are on record."""
        return self.verdict in ("equal", "explained")


def new_id() -> str:
    """Return the ID of a new audit: its time in UTC, and some random characters."""
    return time.strftime("%Y%m%dT%H%M%SZ-", time.gmtime()) + secrets.token_hex(3)


class AuditRun:
    """One audit's application."""

    def __init__(
        self,
        file: LinksFile,
        clusters: AuditedClusters,
        spark: Spark,
        job: AuditJob,
        home: Path,
        *,
        slots: int,
        show: Callable[[str, AuditProgress | None], None],
    ) -> None:
        self._job = job
        self._spark = spark
        self._show = show
        self._folder = home / _APPLICATIONS
        self._name = f"strait-audit-{job.id}"
        self._launcher: Launcher = launcher_for(spark, self._folder, parent_pid=os.getpid())
        destination = file.clusters[clusters.destination]
        link = file.links[clusters.link] if clusters.link else None
        self._spec = AppSpec(
            link=clusters.link,
            group=GROUP,
            source_name=clusters.source,
            source=file.clusters[clusters.source],
            destination_name=clusters.destination,
            destination=with_key(destination) if clusters.link else destination,
            slots=slots,
            slot_memory_bytes=_MEMORY_BYTES,
            ledger_seconds=86_400,
            ledger_dir=job.directory,
            checkpoint_dir=str(self._folder / "checkpoints"),
            selected=None if link is None else Selected.of(link),
            audit=job,
            transforms=link is not None and any(rule.transform is not None for rule in link.topics.rules),
        )

    def run(self, is_over: Callable[[], bool]) -> Ended | None:
        """Run the audit to its end; None: it is over before that, and can be resumed.

        Raises:
            LaunchError: its application fails repeatedly, or reports an error that another attempt would repeat.
            SetupError: this host lacks a prerequisite.
            ClusterUnavailable, NotAuthorized, StateError: a cluster does not answer before Spark starts; or the result is not
                on this host, and cannot be read from the link's state.
        """
        if self.certificate() is not None:
            return self._ended()
        self._show_progress(None)
        for properties, name in self._read:
            Admin(properties, name)
        if is_over():
            return None
        self._submit()
        ended = None
        try:
            ended = self._run(is_over)
        finally:
            if ended is None:
                self._launcher.stop(self._name, grace_seconds=5.0)
        return ended

    def _run(self, is_over: Callable[[], bool]) -> Ended | None:
        submissions = 1
        while not is_over():
            application = self._launcher.state(self._name)
            if application is None or application.state is State.DEAD:
                self._require_hope(application, submissions)
                submissions += 1
                self._submit()
            elif application.state is State.FINISHED:
                return self._ended()
            self._show_progress(application)
            time.sleep(_POLL_SECONDS)
        return None

    @property
    def _read(self) -> Iterator[Cluster]:
        """Yield the clusters that are read."""
        if self._job.request.relation != "ledger":
            yield Cluster(self._spec.source, self._spec.source_name)
        yield self._destination

    @property
    def _destination(self) -> Cluster:
        return Cluster(self._spec.destination, self._spec.destination_name)

    def _show_progress(self, application: Application | None) -> None:
        """Show the progress. While Spark starts, and if the directory is not on this host, only the state is known."""
        starts = application is None or application.state is State.SUBMITTED
        found = self.progress()
        if found is None or starts:
            counts = {} if found is None else found.model_dump(include={"chunks", "done", "unexplained"})
            found = AuditProgress(id=self._job.id, state="starting" if starts else "running", **counts)
        self._show("audit", found)

    def _ended(self) -> Ended:
        """Return the result, and delete the files of the application, of which `--resume` needs some until the result is known."""
        self._launcher.stop(self._name, grace_seconds=5.0)
        ended = self._result()
        shutil.rmtree(self._folder / self._name, ignore_errors=True)
        for name in (f"{self._name}.json", f"{self._name}.lock"):
            (self._folder / name).unlink(missing_ok=True)
        return ended

    def _result(self) -> Ended:
        if (whole := self.certificate()) is not None:
            return Ended.of(self._job.id, whole, self._directory)
        found = self._recorded()
        verdict, records = (found.verdict, found.records) if found is not None else ("", 0)
        return Ended(self._job.id, None, self._directory, verdict, records)

    def _recorded(self) -> Audit | None:
        """Return the result that the application has recorded in the link's state; None for copies that no link made."""
        if not self._spec.link:
            return None
        return next((one for one in audits(self._destination, self._spec.link) if one.id == self._job.id), None)

    def progress(self) -> AuditProgress | None:
        """Return the progress; None if it is unknown, since the directory is not on this host."""
        data = self._file("progress.json")
        return None if data is None else read_progress(data)

    def certificate(self) -> Mapping[str, Any] | None:
        data = self._file("certificate.json")
        return None if data is None else dict(json.loads(data))

    @property
    def _directory(self) -> str:
        return f"{self._job.directory}/{self._job.id}"

    def _file(self, name: str) -> bytes | None:
        try:
            return (Path(self._directory) / name).read_bytes()
        except OSError:
            return None

    def _submit(self) -> None:
        path = self._folder / f"{self._name}.json"
        try:
            self._spec.write(path)
        except OSError as error:
            raise SetupError(f"audit: writing {path}: {error.strerror}", hint="free or change that disk") from error
        self._launcher.submit(self._name, path, self._spark)

    def _require_hope(self, application: Application | None, submissions: int) -> None:
        cause = "it disappeared" if application is None else self._launcher.cause(application)
        final = application is not None and application.exit_code == EXIT_CONFIG
        if final or submissions >= _MOST_SUBMISSIONS:
            progress = self.progress()
            resumes = not final or (progress is not None and progress.chunks > 0)
            hint = f"`strait audit --resume {self._job.id}` continues it once the cause is removed" if resumes else ""
            raise LaunchError(f"audit {self._job.id}: its application ended: {cause}", hint=hint)
        self._show(f"audit: its application ended: {cause}; starting it again", None)


def directory_of(spark: Spark, home: Path) -> str:
    """Return the directory of all audits: on YARN and in Kubernetes that of the cluster's settings, else on this
    host."""
    return ledger_of(spark, home).removesuffix("ledger") + "audits"


def ledger_of(spark: Spark, home: Path) -> str:
    """Return the directory of the replication ledger; as `directory_of`."""
    ledger, _ = spark.directories(str(home / "ledger"), "")
    return ledger


def recorded_job(home: Path, audit_id: str) -> AuditJob | None:
    """Return the job of an earlier audit, from the spec that was submitted; None: it is unknown on this host."""
    spec = _recorded(home, audit_id)
    return None if spec is None else spec.audit


def recorded_clusters(home: Path, audit_id: str) -> AuditedClusters | None:
    """Return the clusters of an earlier audit; None as above."""
    spec = _recorded(home, audit_id)
    return None if spec is None else AuditedClusters(spec.link, spec.source_name, spec.destination_name)


def _recorded(home: Path, audit_id: str) -> AppSpec | None:
    path = home / _APPLICATIONS / f"strait-audit-{audit_id}.json"
    return AppSpec.read(path) if path.is_file() else None


def clusters_of(file: LinksFile, link: str) -> AuditedClusters:
    """Return the clusters of a link."""
    return AuditedClusters(link, file.links[link].source, file.links[link].destination)


def require_clusters(file: LinksFile, *names: str) -> None:
    """Raise ConfigError if the links file lacks one of the clusters."""
    problems = [f"has no cluster {name!r}" for name in names if name not in file.clusters]
    if problems:
        raise ConfigError("links file", problems)
