"""The commands that pages show: found here, parsed by the unit tests, and executed by the broker tests.

A page marks what can be executed as it is written:

- `<!-- file: NAME -->` before a fenced block: the reader saves it as NAME.
- `<!-- run -->` before a block of `console` (each line that begins with `$ ` is a command, the lines below it are its
  output) or of `bash` (the block is one command).
- `<!-- captured: NAME -->` … `<!-- end -->` around a block whose output `doc_captures.py` writes.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from support.doc_tables import ROOT, commands, documents

_MARKED = re.compile(r"<!-- (run|file: (?P<name>\S+)) -->\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
_SHELL = {"", "bash", "console"}


class SavedFile(NamedTuple):
    """A file that the reader saves."""

    name: str
    text: str


class Command(NamedTuple):
    """A command that the reader types, and the output that the page shows for it: none where it shows none."""

    line: str
    shown: tuple[str, ...] = ()

    @property
    def first_words(self) -> set[str]:
        """Of each line that is shown: headings and labels, which do not change from run to run."""
        return {words[0] for line in self.shown if (words := line.split())}


def steps(page: str) -> list[SavedFile | Command]:
    """What the reader of a page does, in order. ``page`` is below the project."""
    found: list[SavedFile | Command] = []
    for block in _MARKED.finditer((ROOT / page).read_text(encoding="utf-8")):
        if block["name"]:
            found.append(SavedFile(block["name"], block["text"]))
        elif block["language"] == "bash":
            found.append(Command(block["text"]))
        else:
            found += console(block["text"])
    return found


def console(text: str) -> list[Command]:
    """The commands of a `console` block."""
    found: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        elif found:
            found[-1] = Command(found[-1].line, (*found[-1].shown, line))
    return found


def runnable_pages() -> list[str]:
    """Every page that has a command to execute."""
    pages = [str(path.relative_to(ROOT)) for path in documents()]
    return [page for page in pages if any(isinstance(step, Command) for step in steps(page))]


def strait_lines(path: Path) -> list[str]:
    """Every line of a page's shell blocks that calls `strait`, marked or not."""
    blocks = _FENCED.finditer(path.read_text(encoding="utf-8"))
    lines = (line for block in blocks if block["language"] in _SHELL for line in block["text"].splitlines())
    return [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?(\S*/)?strait ", line)]


def parse(line: str) -> None:
    """Parse a `strait …` line as the command line would, without executing it. Raises a usage error of click's, or
    KeyError for a command that does not exist."""
    words = shlex.split(line.partition(" > ")[0], comments=True)[1:]
    offered = commands()
    path = next((" ".join(["strait", *words[:n]]) for n in (2, 1) if " ".join(["strait", *words[:n]]) in offered), "")
    if not path and words[:1] == ["demo"]:
        return
    if not path and words[:1] == ["audit"]:
        path, words = "strait audit run", ["audit", "run", *words[1:]]
    offered[path].make_context(path, words[len(path.split()) - 1 :])
