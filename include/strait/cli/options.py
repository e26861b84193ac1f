"""Options and output that commands share, so that all commands name and describe them alike."""

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo

from strait.cli.completing import DEFAULT_FILE as DEFAULT_FILE
from strait.cli.completing import TYPED, links_that_start_with, topics_that_start_with
from strait.cli.printing import echo, write_json
from strait.errors import ConfigError
from strait.text import bytes_per_second

if TYPE_CHECKING:
    from strait.state.link_handle import ConfiguredLink

SCHEMA_VERSION = 1
"""Version of the machine-readable output. Raised if a key is removed or changes its meaning, not if one is added."""


class Output(StrEnum):
    """Format in which a command prints its result."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"

    @property
    def structured(self) -> bool:
        """Whether the format is machine-readable."""
        return self in (Output.JSON, Output.YAML)

    def write(self, value: Any) -> None:
        """Write one document to standard output and flush it, also in a pipe: a JSON line, or YAML after ``---``."""
        import json

        text = json.dumps(_versioned(value), ensure_ascii=False)
        if self is Output.YAML:
            import yaml

            text = (
                "---\n" + yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=text.isprintable()).rstrip()
            )
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        else:
            write_json(text)


def _versioned(value: Any) -> Any:
    """Add the schema version to a document, or to each document of a list."""
    if isinstance(value, dict):
        return {"schema_version": SCHEMA_VERSION, **value}
    return [_versioned(item) for item in value] if isinstance(value, list) else value


class HelpPage:
    """Shows examples line by line, which Typer would join, and no type of flags, which Typer calls `<bool>`."""

    epilog: str | None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        examples, self.epilog = self.epilog, None
        for param in self.get_params(ctx):  # type: ignore[attr-defined]  # of the command
            if getattr(param, "is_flag", False):
                param.display_type_rich = lambda ctx: None
        super().format_help(ctx, formatter)  # type: ignore[misc]  # of the command
        self.epilog = examples
        if examples:
            echo(f" Examples:\n\n{textwrap.indent(examples, '   ')}\n")


class CommandGroup(HelpPage, TyperGroup):
    """Shows an example of each of its commands. Shows the help, and exits with 0, if it is given no argument."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])


class Command(HelpPage, TyperCommand):
    """Accepts ``--json`` for ``--output json``, and shows examples."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = args.index("--") if "--" in args else len(args)
        ctx.meta[TYPED] = args
        plain = ["--output=json" if arg == "--json" else arg for arg in args[:rest]]
        return super().parse_args(ctx, [*plain, *args[rest:]])


ConfigOption = Annotated[
    Path,
    typer.Option(
        "--file", "-f", "--config", help="Links file, YAML or JSON.", envvar=["STRAIT_LINKS_FILE", "STRAIT_CONFIG"]
    ),
]

LinkOption = Annotated[
    str | None,
    typer.Option(
        "--link",
        help="Name of the link, instead of the argument.",
        show_default=False,
        autocompletion=links_that_start_with,
    ),
]
LinksArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[LINK]...",
        help="Default: every link of the file.",
        show_default=False,
        autocompletion=links_that_start_with,
    ),
]
PoolOption = Annotated[
    str | None,
    typer.Option("--pool", help="Name of a pool of the links file, instead of a link.", show_default=False),
]
LinkArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="LINK",
        help="Name of the link. May be omitted if the file has one.",
        show_default=False,
        autocompletion=links_that_start_with,
    ),
]

TopicOption = Annotated[
    str | None,
    typer.Option(
        "--topic", help="Only of this source topic.", show_default=False, autocompletion=topics_that_start_with
    ),
]
PartitionOption = Annotated[
    int | None, typer.Option("--partition", help="Only of this partition.", min=0, show_default=False)
]
LossReasonOption = Annotated[str, typer.Option("--reason", help="Reason, kept in the loss log.", show_default=False)]
ByOption = Annotated[
    str, typer.Option("--by", help="Who asks for it. Default: the current user and host.", show_default=False)
]
DecidedByOption = Annotated[
    str, typer.Option("--by", help="Who decides. Default: the current user and host.", show_default=False)
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

OutputOption = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="`table`, `wide` (all columns and rows), `json` or `yaml`. `--json` is short for `-o json`.",
        metavar="FORMAT",
        case_sensitive=False,
    ),
]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def seconds(text: str | float) -> float:
    """Parse a duration such as ``30s``, ``10m`` or ``2h``; a number alone means seconds."""
    found = _DURATION.fullmatch(str(text))
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a duration such as 30s, 10m or 2h")
    return float(found[1]) * _SECONDS[found[2]]


def time_ms(text: str | None) -> int | None:
    """Parse a time such as ``2026-11-26T08:00Z``, in UTC unless it has an offset; return milliseconds since 1970."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time such as 2026-11-26T08:00Z") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def rate(text: str) -> int:
    """Parse a rate such as ``50MB/s``; "" means 0."""
    try:
        return bytes_per_second(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def myself() -> str:
    """Return the current user and host, as ``user@host``."""
    import getpass
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()}"


def one_link(config: Path, link: str | None, *words: str | None, most: int = 0) -> tuple[str, str]:
    """Return the link that a command is for, and the argument after its name; "" if there is none.

    Args:
        link: value of ``--link``; if given, no argument names the link.
        words: all arguments; None for a missing one.
        most: maximum number of arguments after the link's name: 0 or 1.

    Raises:
        ConfigError: the links file cannot be read, has no such link, or has several and none is named; or there are too
            many arguments.
    """
    from strait.config.outline import link_names
    from strait.config.validation import did_you_mean

    rest = [word for word in words if word]
    if link is None:
        names, where = link_names(config), f"links file {config}"
        if rest and rest[0] in names:
            link = rest.pop(0)
        elif len(names) == 1 and len(rest) <= most:
            link = names[0]
        elif rest:
            raise ConfigError(
                where, [f"has no link {rest[0]!r}{did_you_mean(rest[0], names)}; links: {_listed(names)}"]
            )
        else:
            raise ConfigError(where, [f"has several links: {_listed(names)}"], hint="name one")
    if len(rest) > most:
        raise ConfigError("command line", [f"unexpected argument {rest[most]!r}"])
    return link, "".join(rest)


class ChosenLink(NamedTuple):
    """The link that a command is for, and the links file that has it."""

    name: str
    config: Path

    def load(self) -> "ConfiguredLink":
        """Read the link and its clusters. Raises ConfigError."""
        from strait.state.link_handle import ConfiguredLink

        return ConfiguredLink.load(self.config, self.name)


def link_command(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the argument LINK and the options `--file` and `--link` in place of its first parameter,
    a `ChosenLink`.

    The command may have one argument, which then follows LINK; its value is "" if there is none.
    """
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    arguments = [one for one in own if _is_argument(one)]

    @wraps(command)
    def run(first: str | None = None, config: Path = DEFAULT_FILE, link: str | None = None, **rest: Any) -> None:
        words = [rest.pop(one.name) for one in arguments]
        name, word = one_link(config, link, first, *words, most=len(words))
        command(ChosenLink(name, config), *[word] * len(words), **rest)

    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, annotation, default in (
            ("first", LinkArgument, None),
            ("config", ConfigOption, DEFAULT_FILE),
            ("link", LinkOption, None),
        )
    ]
    kept = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
    whole = [shared[0], *kept[: len(arguments)], *shared[1:], *kept[len(arguments) :]]
    run.__signature__ = inspect.Signature(whole)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in whole}
    return run


def _is_argument(parameter: inspect.Parameter) -> bool:
    return any(isinstance(one, ArgumentInfo) for one in getattr(parameter.annotation, "__metadata__", ()))


def known_links(config: Path, named: Sequence[str]) -> Sequence[str]:
    """Return the named links, or all links of the links file if none is named.

    Raises:
        ConfigError: the links file cannot be read, or lacks a named link.
    """
    from strait.config.outline import link_names
    from strait.config.validation import did_you_mean

    known = link_names(config)
    for name in named:
        if name not in known:
            raise ConfigError(f"links file {config}", [f"has no link {name!r}{did_you_mean(name, known)}"])
    return named or known


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
