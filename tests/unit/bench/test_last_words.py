"""What a copier that ended said last, as the error shows it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mm2.copier import Command, Running


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "its log is empty"),
        ("starting\nstarted\n", "started"),
        ("starting\nerror: no Java\nbye\n", "error: no Java"),
        ("error: links.json:\n  links.a: unknown key `b`\n  did you mean `c`?\n", "error: links.json: links.a: unknown key `b` did you mean `c`?"),
        ("java.lang.Exception: late\n\tat some.errors.Thing\n", "java.lang.Exception: late"),
    ],
)  # fmt: skip
def test_the_line_that_tells_most_with_what_it_announces(tmp_path: Path, log: str, words: str) -> None:
    file = tmp_path / "copier.log"
    file.write_text(log)
    nothing: Any = SimpleNamespace()
    assert Running(Command("it", (), file, "copy", "slot"), nothing, nothing).last_words() == words
