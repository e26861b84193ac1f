"""The page's files: they put text into it by one way only, which makes it printable, and are one script."""

import re
from pathlib import Path

import pytest

from strait.config.home import project_root
from strait_airflow.page.bundle import bundled

STATIC = project_root() / "plugins/strait_airflow/page/static"
OTHER_WAYS = re.compile(
    r"\.(?:textContent|innerText|innerHTML|outerHTML|title|ariaLabel) = |insertAdjacent|createTextNode"
    r"|setAttribute\(\"(?:aria-label|title|placeholder|alt)\"|document\.write|new Option|\.(?:alert|confirm|prompt)\("
)


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_no_file_puts_text_into_the_page_by_itself(path: Path) -> None:
    found = OTHER_WAYS.findall(path.read_text(encoding="utf-8"))
    assert bool(found) == (path.name == "dom.js"), "use `el`, `put` or `label`"


MODULES = {path.name: path.read_text(encoding="utf-8") for path in STATIC.glob("*.js")}


def test_the_pages_script_has_every_module_once_after_those_that_it_imports() -> None:
    script = bundled("page.js", MODULES)
    order = re.findall(r'^modules\["([^"]+)"\] = ', script, re.MULTILINE)
    assert sorted(order) == sorted(MODULES.keys() - {"home.js"}), "that one is Airflow's home page's"
    assert not re.search(r"^(?:import|export)\b", script, re.MULTILINE)
    for name in order:
        needed = set(re.findall(r'from "\./([^"]+)"', MODULES[name]))
        assert needed <= set(order[: order.index(name)])


def test_exports_are_what_the_other_modules_get() -> None:
    script = bundled(
        "b.js",
        {
            "a.js": "export const one = 1;\nexport async function two() {}\nconst own = 3;\n",
            "b.js": 'import { one, two } from "./a.js";\none(two);\n',
        },
    )
    assert script == (
        "const modules = {};\n"
        'modules["a.js"] = (() => {\nconst one = 1;\nasync function two() {}\nconst own = 3;\nreturn { one, two };\n})();\n'
        'modules["b.js"] = (() => {\nconst { one, two } = modules["a.js"];\none(two);\nreturn {  };\n})();\n'
    )


@pytest.mark.parametrize(
    ("modules", "told"),
    [
        ({"a.js": 'import { x } from "./b.js";\n'}, "b.js: no such module: a.js"),
        ({"a.js": 'import { x } from "./b.js";\n', "b.js": 'import { y } from "./a.js";\n'}, "in a circle"),
        ({"a.js": 'import x from "./a.js";\n'}, "a.js: not bundled: import x"),
        ({"a.js": "export default 1;\n"}, "a.js: not bundled: export default"),
        ({"a.js": "export let changed = 1;\n"}, "a.js: not bundled: export let"),
    ],
)
def test_what_cannot_be_bundled_is_refused(modules: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        bundled("a.js", modules)
