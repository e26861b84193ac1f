"""Work that goes on in a thread of its own while a test does other things."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def background(work: Callable[[threading.Event], None]) -> Iterator[threading.Thread]:
    """Runs ``work``, which should end soon once its event is set: when the block fails. Otherwise its end is waited
    for."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield thread
        thread.join()
    finally:
        stop.set()
        thread.join()
