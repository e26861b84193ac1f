"""What does an operator read when something happens? Makes twelve events in a real Airflow, and prints the state, the note
and the log of every attempt of every task of each run that they start.

Applications are slots without Spark. Takes about half an hour.

    python benchmarks/operator_events.py [--only EDIT] [--settle 60] > events.txt
"""

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from confluent_kafka import Producer

from control_loop import Loop, loop, until
from strait.config.home import project_root
from strait.embedded.airflow_client import Json
from strait.errors import SetupError
from strait.kafka.admin import Admin, NewTopic
from strait.launch import processes
from support.reaper import leave_nothing

LINK, ASKED = "shop", "asked"
USERS = {"admin": "right"}
ANSWER_MINUTES = 1
TASKS = ("monitor", "submit", "healthy", "metrics", "look", "ask", "act", "verdict")
OVER = ("success", "failed")
COLORS = {"success": "GREEN", "failed": "RED"}


class Event(NamedTuple):
    """Something that happens to a link.

    Attributes:
        make: makes it happen.
        end: ends it, after the operator has seen it; None: it needs no end.
        dag: of which runs are printed.
    """

    title: str
    make: Callable[[Loop], None]
    end: Callable[[Loop], None] | None = None
    dag: str = f"strait_{LINK}"


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="events whose title contains this")
    parser.add_argument(
        "--settle", type=float, default=60.0, help="seconds without a new run after which an event is over"
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running_links(Path(name)) as running:
        for number, event in enumerate(EVENTS, 1):
            if asked.only in event.title or number == 1:
                happen(running, number, event, asked.settle)


@contextmanager
def running_links(folder: Path) -> Iterator[Loop]:
    """Two links, the second of which requires approval; Airflow waits for an answer for a minute instead of an hour."""
    project = folder / "project"
    project.mkdir()
    for part in ("plugins", "include", "docker"):
        (project / part).symlink_to(project_root() / part)
    shutil.copytree(project_root() / "dags", project / "dags")
    dags = project / "dags" / "strait.py"
    text = dags.read_text(encoding="utf-8")
    shorter = text.replace("ANSWER_WITHIN = timedelta(hours=1)", f"ANSWER_WITHIN = timedelta(minutes={ANSWER_MINUTES})")
    assert shorter != text, "the DAG file names the time for an answer otherwise"
    dags.write_text(shorter, encoding="utf-8")
    links: dict[str, Json] = {LINK: {}, ASKED: {"approval": "required"}}
    with loop(folder, links, users=USERS, project=project) as running:
        yield running


def happen(running: Loop, number: int, event: Event, settle_seconds: float) -> None:
    print(f"\n{'=' * 110}\n{number}. {event.title}\n{'=' * 110}", flush=True)
    before = set() if number == 1 else {run["dag_run_id"] for run in running.client.runs(event.dag)}
    try:
        event.make(running)
        before = show_runs(running, event.dag, before, settle_seconds)
        if event.end is not None:
            print("\n-- It is ended.", flush=True)
            event.end(running)
            show_runs(running, event.dag, before, settle_seconds)
    except TimeoutError as error:
        print(f"** {error}", flush=True)


def show_runs(running: Loop, dag: str, before: set[str], settle_seconds: float) -> set[str]:
    """Wait until runs have come and none for a while, and print them, oldest first. Return all runs."""

    def new_runs() -> list[Json]:
        return [run for run in reversed(running.client.runs(dag)) if run["dag_run_id"] not in before]

    until(lambda: bool(new_runs()), 300)
    count, since = 0, time.monotonic()
    while time.monotonic() < since + settle_seconds:
        found = new_runs()
        if len(found) != count or not all(run["state"] in OVER for run in found):
            count, since = len(found), time.monotonic()
        time.sleep(1)
    for run in new_runs():
        show_run(running, dag, run)
    return before | {run["dag_run_id"] for run in new_runs()}


def show_run(running: Loop, dag: str, run: Json) -> None:
    identity = run["dag_run_id"]
    print(f"\n--- {COLORS[run['state']]} run {identity}, {run.get('duration') or 0:.0f} s")
    for line in (run["note"] or "(no note)").splitlines():
        print(f"    note | {line}")
    states = running.client.task_states(dag, identity)
    for task in sorted(states, key=lambda task: (TASKS.index(task.split("[")[0]), task)):
        print(f"  {task}: {states[task]}")
        tries = running.client.tries(dag, identity, task)
        for attempt in tries:
            if tries != [1]:
                print(f"    attempt {attempt}:")
            show_log(running, dag, identity, task, attempt)
    sys.stdout.flush()


def show_log(running: Loop, dag: str, run: str, task: str, attempt: int) -> None:
    try:
        log = running.client.task_log(dag, run, task, attempt)
    except SetupError as error:
        print(f"    ** {error}")
        return
    for line in log.splitlines():
        print(f"    {line[11:19]} {line[27:]}" if line[:2] == "20" else f"    {line}")


def select(*topics: str) -> Callable[[Loop], None]:
    return lambda running: running.client.set_variable(
        f"strait_topics_{LINK}", json.dumps({"regex": [rf"{LINK}\..*"], "include": list(topics)})
    )


def set_text(text: str) -> Callable[[Loop], None]:
    return lambda running: running.client.set_variable(f"strait_topics_{LINK}", text)


def break_yaml(running: Loop) -> None:
    text = running.links_file.read_text(encoding="utf-8")
    running.links_file.with_suffix(".right").write_text(text, encoding="utf-8")
    running.links_file.write_text(f"{text}\n  bad: [\n", encoding="utf-8")


def mend_yaml(running: Loop) -> None:
    running.links_file.write_text(
        running.links_file.with_suffix(".right").read_text(encoding="utf-8"), encoding="utf-8"
    )


def new_topic(running: Loop) -> None:
    Admin(running.source.client_properties, "here").create([NewTopic(f"{LINK}.new", 1, 1)])


def kill(times: int) -> Callable[[Loop], None]:
    def kill_again_and_again(running: Loop) -> None:
        name = f"strait-{LINK}-default"
        for done in range(times):
            until(lambda: alive(running, name) or is_held(running, name), 300)
            if not alive(running, name):
                print(f"-- It was killed {done} times, and is not submitted any more.", flush=True)
                return
            for process in (one for some in processes.find(running.launcher.directory / name).values() for one in some):
                process.kill()
            until(lambda: not alive(running, name))

    return kill_again_and_again


def alive(running: Loop, name: str) -> bool:
    found = running.launcher.state(name)
    return found is not None and found.state.alive


def is_held(running: Loop, name: str) -> bool:
    """Whether it does not run, and no run is about to submit it."""
    time.sleep(15)
    runs = running.client.runs(f"strait_{LINK}")
    return not alive(running, name) and all(run["state"] in OVER for run in runs)


def restart(running: Loop) -> None:
    running.client.trigger(f"strait_{LINK}", {"restart": "default"})


def connect(password: str) -> Callable[[Loop], None]:
    def set_connection(running: Loop) -> None:
        right = running.destination.client_properties
        properties = right | {"sasl.password": password}
        running.client.set_connection("strait_there", "kafka", json.dumps(properties))

    return set_connection


def write_as_a_stranger(running: Loop) -> None:
    producer = Producer(running.destination.client_properties)
    producer.produce(f"{LINK}.orders", b"of another producer", partition=0)
    assert producer.flush(30) == 0
    own = Producer(running.source.client_properties)  # a copy that is appended to shows it
    own.produce(f"{LINK}.orders", b"of the link", partition=0)
    assert own.flush(30) == 0


def accept_strangers(running: Loop) -> None:
    rules = [{"match": f"{LINK}.orders", "on_foreign": "continue"}]
    topics = {"regex": [rf"{LINK}\..*"], "include": ["others.1"], "rules": rules}
    running.client.set_variable(f"strait_topics_{LINK}", json.dumps(topics))


def ask(running: Loop) -> None:
    running.client.unpause(f"strait_{ASKED}_approval")


def approve(running: Loop) -> None:
    dag = f"strait_{ASKED}_approval"

    def asking() -> list[str]:
        runs = [run["dag_run_id"] for run in running.client.runs(dag) if run["state"] == "running"]
        return [run for run in runs if running.client.task_states(dag, run).get("ask") == "awaiting_input"]

    if not asking():
        running.client.trigger(dag)
    until(lambda: bool(asking()))
    time.sleep(5)  # Airflow counts on a person who reads before he answers
    running.client.answer(dag, asking()[0], "ask", "Approve")


EVENTS = (
    Event("first run", lambda _: None),
    Event("edit", select("others.1")),
    Event("bad edit", set_text('{"includ": ["others.2"]}'), select("others.1")),
    Event("YAML error", break_yaml, mend_yaml),
    Event("new topic", new_topic),
    Event("killed once", kill(1)),
    Event("destination down", lambda running: running.destination.stop(), lambda running: running.destination.start()),
    Event("source down", lambda running: running.source.stop(), lambda running: running.source.start()),
    Event("wrong password", connect("wrong"), connect(USERS["admin"])),
    Event("halted partition", write_as_a_stranger, accept_strangers),
    Event("approval unanswered", ask, approve, f"strait_{ASKED}_approval"),
    Event("killed six times", kill(6), restart),  # last: the link needs an operator for an hour
)


if __name__ == "__main__":
    main()
