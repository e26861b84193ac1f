"""Commands that a link's operators let run before and after steps of a failover."""

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from strait.config import links
from strait.control.failover.hooks import Hooks
from strait.control.failover.turn import Turn
from strait.errors import ConfigError, FailoverStopped, FailoverTakenOver, HookFailed
from strait.planning.failover import Check, Verdict
from strait.state.failover_records import Failover, FailoverStep
from strait.state.link_handle import ConfiguredLink

RECORD = Failover(
    id="f1", link="l", source="a", destination="b", kind="planned", by="x", turn="t", strait_version="1", began_at_ms=1
)
DONE = Check(Verdict.DONE, "")


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def link_with(*hooks: dict[str, Any]) -> ConfiguredLink:
    clusters = {
        name: {"bootstrap.servers": f"{name}:9092", "sasl.username": "u", "sasl.password": "secret"} for name in "ab"
    }
    link = {"source": "a", "destination": "b", "failover": {"hooks": list(hooks)}}
    return ConfiguredLink.of(links.parse({"clusters": clusters, "links": {"l": link}}, where="test"), "l")


def ran(*hooks: dict[str, Any], when: Any = "before", step: str = "stop", run_dag: Any = None) -> list[Check]:
    given = Hooks(link_with(*hooks), run_dag, lambda: {"pay", "orders"})
    return [given.run(hook, when, step, RECORD) for _, hook in given.at(when, step)]


def test_a_command_is_told_of_the_failover_and_of_no_secret(tmp_path: Path) -> None:
    out = tmp_path / "told"
    code = f"import sys; open({str(out)!r}, 'w').write(sys.stdin.read()); print('first'); print('switched'); print()"
    (check,) = ran({"before": "stop", "command": python(code)})
    assert (check.verdict, check.detail) == (Verdict.DONE, f"{shlex.join(python(code))}: switched")
    told = json.loads(out.read_text())
    assert told["topics"] == ["orders", "pay"]
    assert (told["when"], told["step"], told["link"], told["failover"]["id"]) == ("before", "stop", "l", "f1")
    assert told["destination"] == {"name": "b", "bootstrap.servers": "b:9092"}
    assert "secret" not in out.read_text()


@pytest.mark.parametrize(
    ("command", "seconds", "said"),
    [
        (python("import sys; print('no such pool', file=sys.stderr); sys.exit(3)"), 60, "exited with 3: no such pool"),
        (python("import os; os.kill(os.getpid(), 9)"), 60, "was ended by SIGKILL: "),
        (["/nowhere/switch"], 60, "cannot be run: there is no such program on this host"),
        (python("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 1)"), 60, "was ended by signal 35: "),
        (python("import time; print('waiting', flush=True); time.sleep(60)"), 1, "was ended after 1 s: waiting"),
        (python("print('\\x1b[31mred' + 'x' * 9999); raise SystemExit(1)"), 60, "exited with 1: "),
    ],
)
def test_what_it_says_when_it_fails_is_told(command: list[str], seconds: int, said: str) -> None:
    (check,) = ran({"before": "stop", "command": command, "timeout_seconds": seconds})
    assert check.verdict is Verdict.FAILED
    assert check.detail.startswith(f"{shlex.join(command)} {said}")
    assert check.detail.removeprefix(shlex.join(command)).isprintable()
    assert len(check.detail) < 500


def test_what_a_command_has_started_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    inner = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    ran({"before": "stop", "command": python(code), "timeout_seconds": 3})
    deadline = time.monotonic() + 30
    while _lives(int(pid.read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_dag_is_run_in_airflow_alone() -> None:
    asked: list[Any] = []

    def run_dag(dag: str, run: str, conf: Any, seconds: float, check: Any) -> str:
        asked.append((dag, run, conf["step"], seconds))
        if len(asked) == 2:
            raise HookFailed("failed: run 7")
        if len(asked) == 3:
            raise RuntimeError("the API server is away")
        return "run 6"

    hook = {"after": "verify", "dag": "move-dns", "timeout_seconds": 5}
    how: dict[str, Any] = {"when": "after", "step": "verify"}
    assert ran(hook, run_dag=run_dag, **how) == [(Verdict.DONE, "DAG move-dns: run 6")]
    assert ran(hook, run_dag=run_dag, **how) == [(Verdict.FAILED, "DAG move-dns failed: run 7")]
    assert ran(hook, run_dag=run_dag, **how) == [(Verdict.FAILED, "DAG move-dns the API server is away")]
    assert asked == [("move-dns", "strait-failover__f1__after-verify", "verify", 5)] * 3
    assert ran(hook, **how) == [(Verdict.FAILED, "DAG move-dns runs only in a failover that Airflow runs")]


def test_a_look_ahead_finds_what_cannot_be_run() -> None:
    good, lost, dag = {"before": "stop", "command": ["true"]}, {"after": "stop", "command": ["nowhere"]}, "move-dns"
    assert Hooks(link_with(good)).look_ahead() == (Verdict.DONE, "1 hooks: true")
    assert Hooks(link_with(good, lost)).look_ahead().verdict is Verdict.FAILED
    with_dag = link_with({"after": "stop", "dag": dag})
    assert Hooks(with_dag).look_ahead().verdict is Verdict.FAILED
    assert Hooks(with_dag, lambda *_: "").look_ahead().verdict is Verdict.DONE  # type: ignore[misc]
    turn = Turn(RECORD, None, lambda _: None, 1.0, hooks=Hooks(link_with(lost)))
    with pytest.raises(FailoverStopped, match="1 commands cannot be run on this host: nowhere"):
        turn.look_ahead()


def test_a_command_ends_when_another_process_takes_the_failover_over() -> None:
    def taken_over() -> None:
        raise FailoverTakenOver("by another process")

    given = Hooks(link_with({"before": "stop", "command": ["sleep", "60"]}))
    ((_, hook),) = given.at("before", "stop")
    began = time.monotonic()
    with pytest.raises(FailoverTakenOver):
        given.run(hook, "before", "stop", RECORD, taken_over)
    assert time.monotonic() - began < 50


@pytest.mark.parametrize(
    ("hook", "word"),
    [
        ({"command": ["true"]}, "needs either `before` or `after`"),
        ({"before": "stop", "after": "stop", "command": ["true"]}, "needs either `before` or `after`"),
        ({"before": "stop"}, "needs either `command` or `dag`"),
        ({"before": "stop", "command": ["true"], "dag": "x"}, "needs either `command` or `dag`"),
        ({"before": "drain", "command": ["true"]}, "before"),
    ],
)
def test_a_hook_that_means_nothing_is_refused(hook: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        link_with(hook)


def test_hooks_are_steps_that_are_not_taken_twice(tmp_path: Path) -> None:
    log = tmp_path / "log"
    good = {"before": "stop", "command": ["sh", "-c", f"echo one >> {log}"]}
    bad = {"before": "stop", "command": ["sh", "-c", f"echo two >> {log}; test -e {tmp_path}/mended"]}
    told: list[FailoverStep] = []
    hooks = Hooks(link_with(good, bad))
    turn = Turn(RECORD, None, told.append, 1.0, hooks=hooks)
    with pytest.raises(FailoverStopped, match=r"before stop \(2\): sh -c .* exited with 1"):
        turn.take_with_hooks("stop", lambda: DONE)
    assert not turn.took("stop")
    (tmp_path / "mended").touch()
    again = Turn(turn.record, None, told.append, 1.0, hooks=hooks)
    again.take_with_hooks("stop", lambda: DONE)
    assert log.read_text().split() == ["one", "two", "two"]
    assert [(step.name, step.verdict) for step in again.record.steps] == [
        ("before stop", "done"),
        ("before stop (2)", "done"),
        ("stop", "done"),
    ]
    changed = Hooks(link_with(bad))  # the first one was removed since
    last = Turn(again.record, None, told.append, 1.0, hooks=changed)
    last.run_hooks("before", "stop")
    assert log.read_text().split() == ["one", "two", "two", "two"]
    look = Turn(RECORD, None, told.append, None, hooks=hooks)
    look.take_with_hooks("stop", lambda: DONE)
    assert len(log.read_text().split()) == 4


STARTED = RECORD.model_copy(
    update={"steps": (FailoverStep(name="after fence", verdict="waiting", detail="", began_at_ms=1, seconds=0.0),)}
)


def test_a_hook_that_fails_keeps_nothing_from_being_taken_back(tmp_path: Path) -> None:
    log = tmp_path / "log"
    hooks = [
        {when: "take_back", "command": ["sh", "-c", f"echo {when} >> {log}; exit 1"]} for when in ("before", "after")
    ]
    told: list[FailoverStep] = []
    turn = Turn(STARTED, None, told.append, 1.0, hooks=Hooks(link_with(*hooks)))
    turn.start_over()  # the process before may have run it
    turn.give_up(lambda: log.open("a").write("undone\n"))
    assert log.read_text().split() == ["before", "undone", "after"]
    assert turn.record.outcome == "aborted"
    assert [(step.name, step.verdict) for step in turn.record.steps] == [
        ("after fence", "waiting"),
        ("before take back", "failed"),
        ("after take back", "failed"),
    ]
    assert [step.name for step in told] == ["before take back", "after take back"]


def test_nothing_is_switched_back_that_this_failover_has_not_switched(tmp_path: Path) -> None:
    log = tmp_path / "log"
    back = {"after": "take_back", "command": ["sh", "-c", f"echo back >> {log}"]}
    turn = Turn(RECORD, None, lambda _: None, 1.0, hooks=Hooks(link_with(back)))
    with pytest.raises(FailoverStopped):
        turn.take("copying", lambda: Check(Verdict.FAILED, "the link is stopped"))
    turn.give_up()
    assert (turn.record.outcome, log.exists()) == ("aborted", False)


def test_an_interrupt_while_a_hook_runs_keeps_nothing_from_being_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    undone: list[bool] = []

    def interrupted(*_: Any) -> Check:
        raise KeyboardInterrupt

    monkeypatch.setattr(Hooks, "run", interrupted)
    turn = Turn(STARTED, None, lambda _: None, 1.0, hooks=Hooks(link_with({"before": "take_back", "dag": "x"})))
    with pytest.raises(KeyboardInterrupt):
        turn.give_up(lambda: undone.append(True))
    assert undone == [True]
