"""The page's files put text into it by one way only, which makes it printable."""

import re
from pathlib import Path

import pytest

from strait.config.home import project_root

STATIC = project_root() / "plugins/strait_airflow/page/static"
OTHER_WAYS = re.compile(
    r"\.(?:textContent|innerText|innerHTML|outerHTML|title|ariaLabel) = |insertAdjacent|createTextNode"
    r"|setAttribute\(\"(?:aria-label|title|placeholder|alt)\"|document\.write|new Option|\.(?:alert|confirm|prompt)\("
)


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_no_file_puts_text_into_the_page_by_itself(path: Path) -> None:
    found = OTHER_WAYS.findall(path.read_text(encoding="utf-8"))
    assert bool(found) == (path.name == "dom.js"), "use `el`, `put` or `label`"


def test_all_modules_are_asked_for_at_once_and_not_one_after_the_other() -> None:
    """Each waits for Airflow to look at the login."""
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    own = {"page.js", "home.js"}  # the page's script itself, and that of Airflow's home page
    assert (
        set(re.findall(r'rel="modulepreload" href="([^"]+)"', page))
        == {path.name for path in STATIC.glob("*.js")} - own
    )
