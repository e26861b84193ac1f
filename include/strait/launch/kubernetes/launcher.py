"""Applications as drivers and executors in a Kubernetes cluster.

All their state is in the cluster, and any host finds it there by labels. Kubernetes never restarts a driver (Spark
gives its pod `restartPolicy: Never`); strait.launch.applications determines whether it is submitted again, as for every
other launcher.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from strait.config.app_spec import AppSpec, PoolSpec, Spec, parse_spec, read_spec
from strait.config.kubernetes_settings import Kubernetes
from strait.config.links import Spark
from strait.config.validation import read_yaml
from strait.errors import ConfigError, LaunchError
from strait.launch import submission
from strait.launch.base import LOG_TAIL_BYTES, Application, State
from strait.launch.cause import cause_of, without_secrets
from strait.launch.kubernetes import history, names, spark_submit, templates
from strait.launch.kubernetes.api import Api, KubernetesUnavailable, items_owned_by
from strait.launch.kubernetes.driver import Driver, driver_of
from strait.launch.kubernetes.history import Ended
from strait.launch.kubernetes.properties import JOB, kubernetes_properties
from strait.launch.processes import MARK
from strait.text import utc
from strait.waiting import tries, unix_ms

KEEP_ENDED_SECONDS = 3600.0
"""A driver that has ended is kept this long for inspection, unless it is submitted again."""

_DRIVERS = f"{names.ROLE}=driver"
_OWNED = ("pod", "service", "config_map", "network_policy", "secret")
_POLL_SECONDS = 0.5
log = logging.getLogger(__name__)

_REMOVAL_SECONDS = 60.0
"""How long the removal of a pod may take after its grace period."""
_SUBMITTING_SECONDS = 600.0
"""A spec without a driver after this time belongs to a submission that was interrupted."""


class KubernetesLauncher:
    """See strait.launch.base.Launcher.

    Args:
        spark: a link's `spark` block.
        settings: its `kubernetes` block.
        directory: directory on this host that records which cluster an application was submitted to, in case the link
            is later moved to another one. Nothing else is read from it.
    """

    passes_on_specs = False

    def __init__(self, spark: Spark, settings: Kubernetes, directory: Path) -> None:
        self._directory = directory
        self._settings = settings
        self._master = spark.master
        self._api = Api(spark.master, settings)

    def submit(self, name: str, spec_path: Path, spark: Spark) -> Application:
        """Have Spark create the driver's pod, whose name prevents a second one regardless of the submitter."""
        spec = read_spec(spec_path)
        driver = self._driver(name)
        if driver is not None and not driver.deleting and driver.state(unix_ms()).alive:
            return self._seen(driver)
        self._clear(name, grace_seconds=1)
        number = str(max([unix_ms(), *(one.submitted_at_ms + 1 for one in self._ended(name))]))
        labels, told = names.labels(name, *_owner_of(spec), number), {names.APPLICATION: name}
        secret = f"{names.resource_name(name)}-{number}"
        given = _pod_template(self._settings.pod_template)

        def files(folder: Path) -> dict[str, str]:
            driver_file, executor_file = folder / "driver.yaml", folder / "executor.yaml"
            driver_file.write_text(yaml.safe_dump(templates.driver_template(given, labels, told, secret, MARK)))
            executor_file.write_text(yaml.safe_dump(templates.executor_template(given, labels, told, secret)))
            return kubernetes_properties(name, spec, spark, self._settings, str(driver_file), str(executor_file))

        tools = spark_submit.find()
        self._note(name, number, spark)
        self._api.create("secret", templates.secret_of(spec, secret, labels, told))
        # If this is interrupted from here on, the secret may have a driver. A secret without one is removed later.
        spec_file = f"{templates.SPEC_FOLDER}/{templates.SPEC_FILE}"
        code, said = spark_submit.run(name, tools, self._master, self._settings, files, [JOB, "--spec", spec_file])
        driver = self._driver(name)
        if driver is not None and driver.submission == number:
            self._api.give("secret", secret, _owner(driver))
            return self._seen(driver)
        self._api.delete("secret", secret)
        if driver is not None:
            return self._seen(driver)  # another submitter was faster
        raise LaunchError(
            f"application {name}: creating its driver in namespace {self._api.namespace}: {cause_of(code, said, spec)}",
            hint="docs/how-to/run-on-kubernetes.md lists the rights that the submitter needs",
        )

    def update(self, application: Application, spec: PoolSpec) -> bool:
        """Return False: secrets of specs are immutable."""
        return False

    def state(self, name: str) -> Application | None:
        """Return the state from the API server; if that does not respond, the state is unknown."""
        try:
            driver = self._driver(name)
            if driver is not None:
                return self._seen(driver)
            ended = self._ended(name)
        except KubernetesUnavailable as error:
            return Application(name, "", State.UNKNOWN, error.message, 0)
        return self._remembered(name, ended[0]) if ended else None

    def stop(self, name: str, *, grace_seconds: float = 15.0) -> None:
        """Delete the driver's pod, and everything that Spark and this launcher created for it; needs no garbage
        collector."""
        self._clear(name, grace_seconds=max(1, int(grace_seconds)), submitting_seconds=0.0)

    def list(self) -> Sequence[Application]:
        """Return every application of the namespace. Also remove drivers an hour after their end, and leftovers."""
        pods = self._api.items("pod", names.selector() + f",{_DRIVERS}")
        drivers = {driver.name: driver for driver in map(driver_of, pods)}
        remembered = {_name_of(one) for one in self._api.items("config_map", names.selector())}
        secrets = self._api.items("secret", names.selector())
        self._give_to(drivers.values(), secrets)
        for name, driver in tuple(drivers.items()):
            ended_ms = driver.ended_at_ms or driver.remove_by_ms or driver.created_at_ms
            if not driver.state(unix_ms()).alive and unix_ms() - ended_ms > KEEP_ENDED_SECONDS * 1000:
                self._clear(name, grace_seconds=1, uid=driver.uid)
                remembered.add(drivers.pop(name).name)
        for name in {_name_of(one) for one in secrets} - drivers.keys():
            self._remove_leftovers(name, _SUBMITTING_SECONDS)
        known = sorted(drivers.keys() | remembered)
        found = (self._seen(drivers[name]) if name in drivers else self.state(name) for name in known)
        return tuple(application for application in found if application is not None)

    def history(self, name: str) -> Sequence[Application]:
        """Return the pod's submission, and the recorded ones before it."""
        try:
            driver, ended = self._driver(name), self._ended(name)
        except KubernetesUnavailable:
            return ()
        newest = (self._seen(driver),) if driver is not None else ()
        return newest + tuple(
            self._remembered(name, one) for one in ended if driver is None or one.id != driver.submission
        )

    def spec(self, application: Application) -> Spec | None:
        """Return the spec in its secret, which is removed with its pod."""
        secret = self._api.read("secret", f"{names.resource_name(application.name)}-{application.id}")
        try:
            return parse_spec(templates.spec_text(secret), "in its secret") if secret else None
        except ConfigError:
            return None

    def log_tail(self, application: Application, max_bytes: int = LOG_TAIL_BYTES) -> str:
        """Return the end of the pod's log, or why it has none yet; if the pod was removed, the last few lines."""
        driver = self._driver(application.name)
        if driver is not None and driver.submission == application.id:
            return self._api.log(driver.pod, max_bytes, driver.container) or driver.reason
        return next((one.log[-max_bytes:] for one in self._ended(application.name) if one.id == application.id), "")

    def cause(self, application: Application) -> str:
        """Determine the cause from the pod's state and log, or return the one recorded when the pod was removed."""
        driver = self._driver(application.name)
        if driver is not None and driver.submission == application.id:
            return self._cause(driver, self.spec(application))
        return next((one.cause for one in self._ended(application.name) if one.id == application.id), "")

    def _note(self, name: str, number: str, spark: Spark) -> None:
        noted = submission.Submission(self._directory / name / number)
        try:
            noted.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            submission.write_place(noted, spark)
            submission.drop_old(self._directory / name)
        except OSError as error:
            raise LaunchError(f"application {name}: submitting it: {error.filename}: {error.strerror}") from error

    def _driver(self, name: str) -> Driver | None:
        pod = self._api.read("pod", names.resource_name(name))
        return driver_of(pod) if pod is not None else None

    def _ended(self, name: str) -> tuple[Ended, ...]:
        return history.parse(self._api.read("config_map", history.name_of(name)))

    def _seen(self, driver: Driver) -> Application:
        return Application(
            name=driver.name,
            id=driver.submission,
            state=driver.state(unix_ms()),
            log=f"kubectl --namespace {self._api.namespace} logs {driver.pod}",
            submitted_at_ms=int(driver.submission),
            exit_code=driver.exit_code,
        )

    def _remembered(self, name: str, one: Ended) -> Application:
        kept = f"kubectl --namespace {self._api.namespace} describe configmap {history.name_of(name)}"
        return Application(name, one.id, one.state, kept, one.submitted_at_ms, one.exit_code)

    def _cause(self, driver: Driver, spec: Spec | None) -> str:
        if driver.exit_code is None:  # it has never run, or its node was lost
            if driver.remove_by_ms is not None and driver.is_lost(unix_ms()) and not driver.reason:
                return f"its node has not removed its pod since {utc(driver.remove_by_ms)} UTC"
            return driver.reason or f"its pod is {driver.phase}"
        said = cause_of(driver.exit_code, self._api.log(driver.pod, LOG_TAIL_BYTES, driver.container), spec)
        return f"{driver.reason}: {said}" if driver.reason else said

    def _clear(
        self, name: str, *, grace_seconds: int, submitting_seconds: float = _SUBMITTING_SECONDS, uid: str = ""
    ) -> None:
        """Remove the driver's pod and everything that belongs to it, and record how it ended.

        Args:
            uid: of the pod to remove, since another submitter may have replaced it; "": any of that name.
        """
        driver = self._driver(name)
        if driver is not None and uid in ("", driver.uid):
            was_alive = driver.state(unix_ms()).alive
            ended = None if was_alive else self._end_of(driver, self.spec(self._seen(driver)))
            self._api.delete("pod", driver.pod, uid=driver.uid, grace_seconds=grace_seconds)
            last = self._until_gone(driver, grace_seconds)
            self._remember(name, ended or self._stopped(last))
        self._remove_leftovers(name, submitting_seconds)

    def _until_gone(self, driver: Driver, grace_seconds: int) -> Driver:
        """Wait until the pod is removed, by force if it takes too long. Return the pod as last seen."""
        seen = driver

        def gone() -> bool:
            nonlocal seen
            found = self._driver(driver.name)
            if found is None or found.uid != driver.uid:
                return True
            seen = found
            return False

        if not _within(grace_seconds + _REMOVAL_SECONDS, gone):
            # Its node may be lost. If it is only disconnected, a second instance does no harm.
            log.warning("application %s: pod %s does not end; removing it by force", driver.name, driver.pod)
            self._api.delete("pod", driver.pod, uid=driver.uid, grace_seconds=0)
            if not _within(_REMOVAL_SECONDS, gone):
                raise LaunchError(f"application {driver.name}: its pod {driver.pod} cannot be removed")
        return seen

    def _remove_leftovers(self, name: str, submitting_seconds: float) -> None:
        """Remove the objects of earlier drivers of this name, and specs without a driver.

        Raises:
            LaunchError: executors still exist.
        """
        for kind in _OWNED:
            for item in self._leftovers(name, kind):
                grace = 1 if kind == "pod" else None
                self._api.delete(kind, item["metadata"]["name"], uid=item["metadata"]["uid"], grace_seconds=grace)
        for secret in self._api.items("secret", names.selector(name)):
            submitted_ms = int(secret["metadata"]["labels"][names.SUBMISSION])
            if not secret["metadata"].get("ownerReferences") and submitted_ms <= unix_ms() - submitting_seconds * 1000:
                self._api.delete("secret", secret["metadata"]["name"])
        if not _within(_REMOVAL_SECONDS, lambda: not self._leftovers(name, "pod")):
            for item in self._leftovers(name, "pod"):  # by force, as with a driver
                self._api.delete("pod", item["metadata"]["name"], uid=item["metadata"]["uid"], grace_seconds=0)
            if not _within(_REMOVAL_SECONDS, lambda: not self._leftovers(name, "pod")):
                pod = names.resource_name(name)
                raise LaunchError(f"application {name}: executors of pod {pod} are still there after its end")

    def _leftovers(self, name: str, kind: str) -> Sequence[dict[str, Any]]:
        """Return the objects of this kind whose driver no longer exists. The driver is read after the list, so that it
        is known even if another submitter has just created it."""
        items = self._api.items(kind)
        living = self._driver(name)
        return items_owned_by(items, names.resource_name(name), living.uid if living is not None else "")

    def _give_to(self, drivers: Iterable[Driver], secrets: Iterable[dict[str, Any]]) -> None:
        """Have the secrets of interrupted submissions removed together with their drivers."""
        by_secret = {f"{driver.pod}-{driver.submission}": driver for driver in drivers}
        for secret in secrets:
            name = secret["metadata"]["name"]
            if not secret["metadata"].get("ownerReferences") and name in by_secret:
                self._api.give("secret", name, _owner(by_secret[name]))

    def _end_of(self, driver: Driver, spec: Spec | None) -> Ended:
        try:
            log = without_secrets(self._api.log(driver.pod, history.KEPT_LOG_CHARACTERS, driver.container), spec)
        except KubernetesUnavailable:
            if not driver.is_lost(unix_ms()):
                raise
            log = ""  # only its node has it
        state = State.FINISHED if driver.phase == "Succeeded" else State.DEAD
        return Ended(
            id=driver.submission, state=state, exit_code=driver.exit_code, cause=self._cause(driver, spec), log=log
        )

    @staticmethod
    def _stopped(last: Driver) -> Ended:
        """Return the record of an application that was alive when it was asked to end. Whether it ended on its own
        within its grace period may not have been seen. Being stopped never counts as a failure, even with another
        exit code than 0."""
        return Ended(
            id=last.submission, state=State.FINISHED, exit_code=last.exit_code, cause="stopped on request", log=""
        )

    def _remember(self, name: str, ended: Ended) -> None:
        known = history.together(self._ended(name), ended)
        self._api.store("config_map", history.config_map(name, known))


def _owner(driver: Driver) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": driver.pod, "uid": driver.uid}


def _name_of(item: dict[str, Any]) -> str:
    """Return the application that an object of Strait belongs to."""
    name: str = item["metadata"]["annotations"][names.APPLICATION]
    return name


def _pod_template(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    where = f"spark.kubernetes: pod_template {path}"
    given = read_yaml(Path(path), where, manifest=True)
    if not isinstance(given, dict):
        raise ConfigError(where, ["is not a Pod"])
    return given


def _within(seconds: float, look: Callable[[], bool]) -> bool:
    return any(look() for _ in tries(seconds, _POLL_SECONDS))


def _owner_of(spec: Spec) -> tuple[str, str]:
    """Return the values of the labels for the link and the task group; those of a pool are its name and none."""
    return (spec.link, spec.group) if isinstance(spec, AppSpec) else (f"pool {spec.pool}", "")
