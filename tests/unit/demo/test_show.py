"""What the demo tells people at its end."""

import pytest

from strait.demo.show import show
from strait.demo.status import DemoStatus


def test_a_command_to_copy_stands_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pids = list(range(27_572, 27_592))
    show(
        DemoStatus(
            {"source": True}, {"source": "127.0.0.1:19092"}, "http://127.0.0.1:8080", "secret", pids, [], 1 << 30
        )
    )
    assert "  kill -9 " + " ".join(map(str, pids)) in capsys.readouterr().out.splitlines()
