"""The one thread of a slot, and what other threads hand in."""

import os
import threading

from strait.net.event_loop import Loop


def test_what_a_thread_hands_in_is_done_on_the_loops_thread() -> None:
    loop = Loop()
    done: list[int] = []
    thread = threading.Thread(target=lambda: loop.call_from_thread(lambda: done.append(threading.get_ident())))
    thread.start()
    while not done:
        loop.run_once(5.0)
    thread.join()
    loop.close()
    assert done == [threading.get_ident()]


def test_timers_run_in_their_order_and_not_when_cancelled() -> None:
    loop = Loop()
    done: list[str] = []
    loop.call_later(0.02, lambda: done.append("second"))
    loop.call_later(0.01, lambda: done.append("first"))
    loop.call_later(0.0, lambda: done.append("never")).cancel()
    while len(done) < 2:
        loop.run_once(1.0)
    loop.close()
    assert done == ["first", "second"]


def test_a_late_thread_never_writes_into_a_file_that_took_over_a_number() -> None:
    """A dial may still be under way when its slot ends; by then the pipe's numbers belong to somebody else."""
    loop = Loop()
    loop.close()
    pipes = [os.pipe() for _ in range(8)]  # one of them gets the loop's old numbers
    for read_end, _ in pipes:
        os.set_blocking(read_end, False)
    loop.call_from_thread(lambda: None)
    for read_end, write_end in pipes:
        os.close(write_end)
        assert os.read(read_end, 10) == b""
        os.close(read_end)
