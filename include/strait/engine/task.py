"""One task of an application: a slot of a link, or the slots that a pool places in it."""

from collections.abc import Callable
from pathlib import Path

from strait.config.app_spec import AppSpec, Spec
from strait.engine.evaluation import Evaluators
from strait.engine.pool_task import run_task
from strait.engine.slot import run_slot


def run(
    spec: Spec,
    spec_path: Path,
    number: int,
    application: str,
    should_stop: Callable[[], bool],
    *,
    begin: Callable[[], None] = lambda: None,
    evaluators: Evaluators | None = None,
) -> None:
    """Copy until ``should_stop()`` returns True; see `run_slot` and `run_task`.

    Args:
        spec: as read from ``spec_path``, which a pool reads again when it changes.
        evaluators: see `run_slot`; not used in a pool, whose links transform no records.
    """
    if isinstance(spec, AppSpec):
        run_slot(spec, number, application, should_stop, begin=begin, evaluators=evaluators)
    else:
        run_task(spec_path, number, application, should_stop, begin=begin)
