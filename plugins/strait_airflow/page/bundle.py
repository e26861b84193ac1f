"""The page's script as one file. Each request waits until Airflow has checked the login, so some thirty modules that are
requested one by one take longer than everything else of the first view. Pure."""

import re
from collections.abc import Iterator, Mapping

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./([\w.]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


def bundled(root: str, modules: Mapping[str, str]) -> str:
    """Return the module ``root`` and all that it needs as one module.

    Each module is a function that returns its exports, called once, after those that it imports.

    Args:
        modules: file name -> text. Imports are `import { a, b } from "./file.js";`, exports `export const`, `export function`
            or `export async function`.

    Raises:
        ValueError: another form of import or export, an import of a missing module, or a circle.
    """
    return "const modules = {};\n" + "".join(_wrapped(name, modules[name]) for name in _in_order(root, modules, ()))


def _in_order(root: str, modules: Mapping[str, str], above: tuple[str, ...]) -> list[str]:
    """Return ``root`` and the modules that it needs, each once, after those that it imports."""
    if root in above or root not in modules:
        raise ValueError(
            f"{root}: {'imported in a circle' if root in above else 'no such module'}: {' > '.join(above)}"
        )
    found: dict[str, None] = {}
    for name in _imported(modules[root]):
        if name not in found:
            found |= dict.fromkeys(_in_order(name, modules, (*above, root)))
    return [*found, root]


def _imported(text: str) -> Iterator[str]:
    return (found[2] for found in _IMPORT.finditer(text))


def _wrapped(name: str, text: str) -> str:
    exported = ", ".join(found[2] for found in _EXPORT.finditer(text))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(r'const \1 = modules["\2"];', text))
    if left := _OTHER.search(body):
        raise ValueError(f"{name}: not bundled: {left[0]}")
    return f'modules["{name}"] = (() => {{\n{body}return {{ {exported} }};\n}})();\n'
