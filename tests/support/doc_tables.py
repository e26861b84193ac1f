"""The tables in docs/ and the schema that are made from the code: `python tests/support/doc_tables.py` writes them
anew.

A table stands between `<!-- generated: KIND [NAME] -->` and `<!-- end -->`. A test holds every one of them equal to
what is made here, so a new option, reason or field cannot be forgotten.
"""

import inspect
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer
from pydantic import BaseModel

from strait.cli.main import app
from strait.config import links
from strait.config.json_schema import schema_text
from strait.exporter.conventional import NAMES
from strait.exporter.metrics import LINKS
from strait.exporter.place_metrics import PLACES
from strait.exporter.rendering import AGE, LEFT_OUT, UP
from strait.importing.clients import CLIENT_ROWS, ClientRow
from strait.importing.mirus import MIRUS_ROWS
from strait.importing.mm2_rows import MM2_ROWS
from strait.importing.table import Row
from strait.reasons import Kind, Reason

ROOT = Path(__file__).parents[2]
OPENAPI = "docs/openapi.json"
_CONTENTS = "contents"
_BLOCK = re.compile(r"(<!-- generated: (\w+) ?([\w ]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def documents() -> list[Path]:
    """Every document for readers of the repository."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


def rendered(text: str) -> str:
    """A document with its tables made anew, and then the list of its headings."""
    made = _BLOCK.sub(
        lambda found: found[0] if found[2] == _CONTENTS else _made(found, _KINDS[found[2]](found[3])), text
    )
    return _BLOCK.sub(lambda found: _made(found, _contents(made)) if found[2] == _CONTENTS else found[0], made)


def _made(found: re.Match[str], text: str) -> str:
    return f"{found[1]}{text}{found[4]}"


def anchor(heading: str) -> str:
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def headings(text: str, level: int = 2) -> list[str]:
    """A document's headings of a level, outside of fenced blocks."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(rf"^{'#' * level} (.+)$", prose, re.MULTILINE)


def _contents(text: str) -> str:
    """The headings of a document in one paragraph."""
    return " ·\n".join(f"[{one}](#{anchor(one)})" for one in headings(text)) + "\n"


def blocks(text: str) -> list[tuple[str, str]]:
    """Kind and name of each generated table of a document."""
    return [(found[2], found[3]) for found in _BLOCK.finditer(text)]


def settings_blocks() -> list[str]:
    """The configuration blocks by class name."""
    return [kind.__name__ for kind in links.Settings.__subclasses__()]


def commands() -> Mapping[str, Any]:
    """Every command that can be typed, as `strait …`, with its click command."""
    return dict(_walk("strait", typer.main.get_command(app)))


def _walk(path: str, command: Any) -> Iterable[tuple[str, Any]]:
    inner = getattr(command, "commands", {})
    if not inner or getattr(command, "invoke_without_command", False):
        yield path, command
    for name, other in inner.items():
        yield from _walk(f"{path} {name}", other)


def _config(block: str) -> str:
    schema = getattr(links, block).model_json_schema()
    required = schema.get("required", [])
    fields = {field.alias or name: field for name, field in getattr(links, block).model_fields.items()}
    rows = []
    for key, field in schema["properties"].items():
        if field.get("deprecated"):
            continue  # the row of the key in its place names it
        default = "required" if key in required else _default(fields[key])
        rows.append((f"`{key}`", _type(field, schema.get("$defs", {})), default, field.get("description", "")))
    return _table(("key", "type", "default", "meaning"), rows)


def _default(field: Any) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, BaseModel):
        return "its defaults"
    if isinstance(value, Mapping) and value:
        return f"`{', '.join(value)}` with its defaults"
    if isinstance(value, tuple) and value:
        return ", ".join(f"`{item}`" for item in value)
    return f"`{value}`" if value not in ("", (), {}) else "empty"


def _type(field: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    if "$ref" in field:
        words = re.findall("[A-Z][a-z]*", field["$ref"].rpartition("/")[2])
        return f"[{' '.join(words).lower()}](#{'-'.join(words).lower()})"
    if "x-shown" in field:
        return str(field["x-shown"])
    if "anyOf" in field:
        return _type(next(option for option in field["anyOf"] if option.get("type") != "null"), defs)
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_type(field['items'], defs)}s"
    if field["type"] == "object":
        inner = next(iter(field.get("patternProperties", {}).values()), field.get("additionalProperties"))
        return f"name → {_type(inner, defs)}" if isinstance(inner, Mapping) else "object"
    if field["type"] == "integer" and "minimum" in field:
        return f"integer, {field['minimum']} to {field['maximum']}" if "maximum" in field else "integer"
    return str(field["type"])


def _reasons(kind: str) -> str:
    chosen = [reason for reason in Reason if reason.kind is Kind(kind)]
    return _table(("code", "meaning", "remedy"), [(f"`{r}`", r.meaning, r.remedy) for r in chosen])


def _commands(_: str) -> str:
    return "\n".join(_command(name, command) for name, command in commands().items())


def _command(name: str, command: Any) -> str:
    """Heading, help, options and, where its help page has them, examples."""
    rows = [(_spelt(parameter), _allowed(parameter), _explained(parameter)) for parameter in command.params]
    body = [row for row in rows if "-completion" not in row[0] and row[0] != "`--help`"]
    parts = [f"## `{name}`", _one_line(command.help)]
    if body:
        parts.append(_table(("option", "default", "meaning"), body).rstrip("\n"))
    if examples := inspect.cleandoc(getattr(command, "epilog", None) or ""):
        parts.append(f"```bash\n{examples}\n```")
    return "\n\n".join(parts) + "\n"


def _spelt(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])


def _allowed(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if isinstance(parameter.show_default, str):
        return f"`{parameter.show_default}`"
    if parameter.default in (None, False, (), "") or callable(parameter.default):
        return "–"
    return f"`{getattr(parameter.default, 'value', parameter.default)}`"


def _explained(parameter: Any) -> str:
    names = getattr(parameter, "envvar", None) or []
    by_environment = f" Or `${names if isinstance(names, str) else names[0]}`." if names else ""
    return _one_line(parameter.help or "") + by_environment


def _import(name: str) -> str:
    tables: Mapping[str, Sequence[Row | ClientRow]] = {"mirus": MIRUS_ROWS, "mm2": MM2_ROWS, "clients": CLIENT_ROWS}
    rows = [(", ".join(f"`{each}`" for each in row.names), row.ours) for row in tables[name]]
    return _table(("property", "here"), rows)


def _metrics(kind: str) -> str:
    """The exporter's: of links, of places, or the conventional ones."""
    if kind == "conventional":
        rows = [(f"`{one.name}`", _labels(one.labels), one.help) for one in NAMES]
    elif kind == "places":
        rows = [(_exported(one.name, one.kind), one.kind, one.help) for one in PLACES]
        return _table(("metric", "type", "meaning"), rows)
    else:
        alone = [(f"`{name}`", "gauge", "`link`", text) for name, text in (UP, AGE, LEFT_OUT)]
        of_links = [
            (_exported(one.name, one.kind), one.kind, _labels(("link", *one.labels)), one.help) for one in LINKS
        ]
        return _table(("metric", "type", "labels", "meaning"), alone + of_links)
    return _table(("metric", "labels", "meaning"), rows)


def _exported(name: str, kind: str) -> str:
    return f"`{name}_total`" if kind == "counter" else f"`{name}`"


def _labels(labels: Iterable[str]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


def _compat(_: str) -> str:
    """Sources by row, destinations by column, as the last `make compat` has kept it."""
    kept = json.loads((ROOT / "tests/compat/results.json").read_text(encoding="utf-8"))
    releases, pairs = kept["releases"], kept["pairs"]
    rows = [(f"from {one}", *(_pair(pairs.get(f"{one}-to-{other}")) for other in releases)) for one in releases]
    return _table(("", *(f"to {release}" for release in releases)), rows)


def _pair(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "not run"
    failed = f"**{found['failed']} failed**, " if found.get("failed") else ""
    return f"{failed}{found.get('passed', 0)} passed, {found['day']}"


def _api(_: str) -> str:
    """The routes of the HTTP API, from its published document."""
    document = json.loads((ROOT / OPENAPI).read_text(encoding="utf-8"))
    rows, root = [], document["servers"][0]["url"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            asked = ", ".join(f"`{one['name']}`" for one in operation.get("parameters", ()) if one["in"] == "query")
            rows.append((f"`{method.upper()} {root}{path}`", asked or "–", _one_line(operation["description"])))
    return _table(("route", "query", "answer"), rows)


def openapi_text() -> str:
    """The document that Airflow's API server would publish. Imports Airflow, which needs a home directory."""
    from strait_airflow.page.app import app
    from strait_airflow.page.openapi import text_of

    return text_of(app)


def _write_openapi() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"AIRFLOW_HOME": home, "AIRFLOW__CORE__PLUGINS_FOLDER": home, "AIRFLOW__CORE__LOAD_EXAMPLES": "0"}
        sys.path.append(str(ROOT / "plugins"))
        (ROOT / OPENAPI).write_text(openapi_text(), encoding="utf-8")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


_KINDS: Mapping[str, Callable[[str], str]] = {
    "config": _config,
    "reasons": _reasons,
    "commands": _commands,
    "import": _import,
    "metrics": _metrics,
    "compat": _compat,
    "api": _api,
}


def files() -> Mapping[Path, str]:
    """Every file that is made here in part or as a whole, with what it must hold."""
    tables = {path: rendered(path.read_text(encoding="utf-8")) for path in documents()}
    return tables | {ROOT / "docs/links.schema.json": schema_text()}


def main() -> int:
    """Write all of them anew."""
    _write_openapi()
    for path, new in files().items():
        if not path.exists() or new != path.read_text(encoding="utf-8"):
            path.write_text(new, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # it has a package `kafka`, and commands import that of kafka-python
    sys.exit(main())
