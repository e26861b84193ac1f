"""The notifiers and the deadline that a link's `alerts` block names, for the link's DAGs.

The DAG file imports a notifier's class only if a link names it.
"""

import importlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from airflow.sdk import BaseNotifier

    from strait.config.links import Alerts, Link, Notifier


def dag_arguments(alerts: "Alerts | None") -> dict[str, Any]:
    """Return the DAG's arguments for these alerts. A notifier that cannot be built is absent: a run of the link fails
    with the reason, see `check_alerts`."""
    from strait.errors import ConfigError

    if alerts is None:
        return {}
    try:
        callbacks = [_built(one, "") for one in alerts.on_failure]
        deadlines = [] if alerts.deadline_seconds is None else _deadlines(alerts.on_deadline, alerts.deadline_seconds)
    except ConfigError:
        return {}
    return ({"on_failure_callback": callbacks} if callbacks else {}) | ({"deadline": deadlines} if deadlines else {})


def approval_notifiers(alerts: "Alerts | None") -> "list[BaseNotifier]":
    """Return the notifiers for a request for approval."""
    from strait.errors import ConfigError

    try:
        return [] if alerts is None else [_built(one, "") for one in alerts.on_failure]
    except ConfigError:
        return []


def check_alerts(name: str, link: "Link") -> None:
    """Raise ConfigError if a notifier of the link cannot be built."""
    for key in ("on_failure", "on_deadline"):
        for number, one in enumerate(getattr(link.alerts, key)):
            notifier = _built(one, f"links.{name}.alerts.{key}.{number}")
            if key == "on_deadline" and type(notifier).async_notify is _base().async_notify:
                _refuse(f"links.{name}.alerts.{key}.{number}", f"{one.notifier} has no `async_notify`")


def _deadlines(some: "Sequence[Notifier]", seconds: int) -> list[Any]:
    from airflow.sdk.definitions.callback import AsyncCallback
    from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

    return [
        DeadlineAlert(
            reference=DeadlineReference.DAGRUN_QUEUED_AT,
            interval=timedelta(seconds=seconds),
            callback=AsyncCallback(one.notifier, dict(one.arguments)),
        )
        for one in some
    ]


def _built(one: "Notifier", where: str) -> "BaseNotifier":
    module, _, name = one.notifier.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
        if not (isinstance(found, type) and issubclass(found, _base())):
            _refuse(where, f"{one.notifier} is not one of Airflow's notifiers")
        arguments: Mapping[str, Any] = one.arguments
        notifier: BaseNotifier = found(**arguments)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        _refuse(where, f"{one.notifier} cannot be made: {error}")
    return notifier


def _base() -> "type[BaseNotifier]":
    from airflow.sdk import BaseNotifier

    return BaseNotifier


def _refuse(where: str, problem: str) -> NoReturn:
    from strait.errors import ConfigError

    raise ConfigError(
        where, [problem], hint="install the provider's package where Airflow runs, or correct the arguments"
    ) from None
