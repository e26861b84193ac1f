"""Runs a slot beside the generator that gives its rows to Spark, in one process."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

from strait.engine.detour.exchange import Exchange
from strait.engine.evaluation import Evaluators

_FAREWELL_SECONDS = 10.0


def copied_beside(
    transforms: frozenset[int],
    copy: Callable[[Evaluators, Callable[[], bool]], None],
    should_stop: Callable[[], bool],
) -> Iterator[Any]:
    """Yield the rows of transformed topics while a slot runs on a separate thread. If the rows are not taken any more, the
    slot ends, too.

    Args:
        copy: runs the slot to its end, given its evaluators and a function that returns whether to stop.

    Raises the error that ``copy`` raises.
    """
    exchange, over = Exchange(transforms), threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            copy(exchange, lambda: over.is_set() or should_stop())
        except BaseException as error:  # noqa: BLE001  raised by the generator
            failures.append(error)
        finally:
            exchange.end()

    slot = threading.Thread(target=run, name="slot", daemon=True)
    slot.start()
    try:
        yield from exchange.rows(over.is_set)
    finally:
        over.set()
        slot.join(_FAREWELL_SECONDS)
        exchange.close()
    if failures:
        raise failures[0]
