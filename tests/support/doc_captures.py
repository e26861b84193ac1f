"""Real output for the pages: `python tests/support/doc_captures.py [NAME …]` runs the commands and writes what they
print.

A page has `<!-- captured: NAME -->`, a `console` block, and `<!-- end -->`. Lines that begin with `$ ` are executed, and
their output replaces what stood below them. Needs free ports 19092 and 29092, and for `demo` three minutes.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from support.doc_tables import ROOT, documents
from support.fixtures.waiting import eventually
from support.pages import SavedFile, console, steps

STRAIT = Path(sys.executable).with_name("strait")
_CAPTURED = re.compile(
    r"(<!-- captured: (?P<name>[\w ]+) -->\n\n?(?:<!-- run -->\n)?```console\n)(?P<text>.*?)(```\n\n?<!-- end -->)",
    re.DOTALL,
)
_PASSWORD = re.compile(r"(password )\S+")
_CAUGHT_UP_SECONDS = 180.0


def captured(text: str) -> list[tuple[str, str]]:
    """Name and content of each capture that a page shows."""
    return [(found["name"], found["text"]) for found in _CAPTURED.finditer(text)]


def _execute(line: str, directory: Path) -> str:
    """What a reader sees: the command's output in a terminal of 120 columns."""
    environment = os.environ | {
        "PATH": f"{STRAIT.parent}:{os.environ['PATH']}",
        "STRAIT_HOME": str(directory / (".strait" if directory == ROOT else "home")),
        "COLUMNS": "120",
    }
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{line}: exit code {done.returncode}: {done.stderr}")
    return "".join(f"{row.rstrip()}\n" for row in done.stdout.splitlines())


def _again(text: str, directory: Path) -> str:
    """A block with its commands executed again."""
    return "".join(f"$ {command.line}\n{_execute(command.line, directory)}" for command in console(text))


@contextmanager
def _two_clusters(directory: Path) -> Iterator[None]:
    """The two clusters of the README, with a topic of its own and three more of a shop."""
    with (
        Cluster(directory / "a", ports=[19092]) as a,
        Cluster(directory / "b", ports=[29092]),
    ):
        topics = {"events": 3, "orders": 3, "payments": 2}
        Admin(a.client_properties, "a").create([NewTopic(name, count, 1) for name, count in topics.items()])
        producer = Producer(a.client_properties)
        for number in range(6000):
            producer.produce(list(topics)[number % 3], key=str(number), value=f"record {number}")
        producer.flush()
        del producer  # it would say on standard error that the clusters end
        yield


def _plan(text: str) -> str:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for step in steps("README.md"):
            if isinstance(step, SavedFile):
                (directory / step.name).write_text(step.text, encoding="utf-8")
        with _two_clusters(directory):
            return _again(text, directory)


_SHOP = """\
clusters:
  a: {bootstrap.servers: "127.0.0.1:19092"}
  b: {bootstrap.servers: "127.0.0.1:29092"}
links:
  a-to-b: {source: a, destination: b, topics: {include: [orders, payments]}}
"""


def _status(text: str) -> str:
    """The status of a link that has caught up, but for a partition that somebody has paused."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        directory = Path(name)
        (directory / "links.yaml").write_text(_SHOP, encoding="utf-8")
        stack.enter_context(_two_clusters(directory))
        environment = os.environ | {"STRAIT_HOME": str(directory / "home")}
        run = subprocess.Popen([STRAIT, "run", "a-to-b"], cwd=directory, env=environment, stdout=subprocess.DEVNULL)
        stack.callback(run.wait, 60)
        stack.callback(run.terminate)
        _execute(f"strait wait a-to-b --for caught-up --timeout {_CAUGHT_UP_SECONDS:.0f}s", directory)
        _execute('strait pause a-to-b payments-1 --by alice --reason "maintenance of the database"', directory)
        eventually(
            lambda: '"reason": "paused"' in _execute("strait status a-to-b payments --json", directory),
            what="the slot reports the pause",
        )
        return _again(text, directory)


def _demo(_: str) -> str:
    """The last lines of `make demo`: from the first step that is done on."""
    try:
        shown = _execute(f"{STRAIT} demo up", ROOT)
    finally:
        _execute(f"{STRAIT} demo down", ROOT)
    return _PASSWORD.sub(r"\1…", shown)


_KINDS: Mapping[str, Callable[[str], str]] = {"demo": _demo, "readme plan": _plan, "readme status": _status}
NAMES = tuple(_KINDS)


def main(names: list[str]) -> int:
    """Write the captures of these names, or all of them."""
    made: dict[str, str] = {}
    for path in documents():
        old = path.read_text(encoding="utf-8")

        def replace(found: re.Match[str]) -> str:
            name = found["name"]
            if names and name not in names:
                return found[0]
            if name not in made:
                made[name] = _KINDS[name](found["text"])
            return f"{found[1]}{made[name]}{found[4]}"

        new = _CAPTURED.sub(replace, old)
        if new != old:
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
