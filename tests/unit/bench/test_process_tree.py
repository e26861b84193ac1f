"""CPU of a tree of real processes: all of it, once, also of those that ended, were orphaned or led their own
session."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mm2.process_tree import ProcessTree
from support.fixtures.waiting import eventually

BURN_SECONDS = 0.5
STARTING_SECONDS = 0.4  # what Python itself may take to start three times; less than one burn

# Each burns until its own clock of CPU time says so: how busy the machine is does not matter.
BURN = f"""
import time
while time.process_time() < {BURN_SECONDS}: pass
"""

# The root burns, has a child that burns and that it waits for, and leaves a burning orphan in a session of its own.
FAMILY = f"""
import subprocess, sys
burn, orphan = {BURN!r}, {BURN!r} + "import sys; print('burnt', flush=True); sys.stdin.read()"
exec(burn)
subprocess.run([sys.executable, "-c", burn], check=True)
middle = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
subprocess.run([sys.executable, "-c", middle, orphan], check=True)
sys.stdin.read()
"""


@contextmanager
def family(tree: ProcessTree) -> Iterator[subprocess.Popen[str]]:
    """Runs until its standard input, which the orphan shares, is closed."""
    root = subprocess.Popen(
        [sys.executable, "-c", FAMILY],
        env=tree.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with root:
        assert root.stdout is not None and root.stdin is not None
        try:
            assert root.stdout.readline() == "burnt\n"
            yield root
        finally:
            root.stdin.close()


def test_cpu_of_children_waited_for_and_of_orphans_is_counted_once():
    tree = ProcessTree()
    with family(tree):
        assert 3 * BURN_SECONDS * 0.95 < tree.cpu_seconds() < 3 * BURN_SECONDS + STARTING_SECONDS


def test_cpu_of_what_has_ended_stays_counted():
    tree = ProcessTree()
    with family(tree):
        before = tree.cpu_seconds()
    eventually(lambda: not tree.members(), what="every member gone")
    assert before <= tree.cpu_seconds() < before + BURN_SECONDS


def test_this_process_and_other_trees_are_not_members():
    tree, other = ProcessTree(), ProcessTree()
    with family(other) as root:
        assert other.cpu_seconds() > 0
        assert tree.cpu_seconds() == 0
        assert tree.members() == []
        assert root.pid in [process.pid for process in other.members()]


def test_memory_is_the_peak_of_the_tree_and_of_the_largest_process_of_a_kind():
    tree = ProcessTree()
    with family(tree):
        tree.cpu_seconds()
        tree.sample_memory()
        largest = tree.peak_process_pss_bytes("burnt")
        assert largest is not None and 0 < largest < tree.peak_pss_bytes
        assert tree.peak_process_pss_bytes("no such command") is None
        assert 0 < tree.cpu_seconds_of("burnt") <= tree.cpu_seconds()
        assert tree.cpu_seconds_of("no such command") == 0
    eventually(lambda: not tree.members(), what="every member gone")
    tree.sample_memory()
    assert tree.peak_process_pss_bytes("burnt") == largest
    assert 0 < tree.cpu_seconds_of("burnt") <= tree.cpu_seconds()
