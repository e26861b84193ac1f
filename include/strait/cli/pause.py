"""`strait pause` and `strait resume`: stop copying a link, a topic or a partition, and go on."""

from typing import TYPE_CHECKING, Annotated

import typer

from strait.cli.options import ConfigOption, JsonOption, LinkOption, print_json

if TYPE_CHECKING:
    from strait.control.pausing import Edited

WhatArgument = Annotated[
    str, typer.Argument(help="TOPIC or TOPIC:PARTITION of the source. Default: the link.", show_default=False)
]


def pause(
    config: ConfigOption,
    link: LinkOption,
    what: WhatArgument = "",
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever wonders later.", show_default=False)] = "",
    by: Annotated[
        str, typer.Option("--by", help="Who. Default: the user of this process and its host.", show_default=False)
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Stop copying a link, a topic or a partition within two seconds. It stays so until `strait resume`."""
    from strait.config.links import load_link
    from strait.control import pausing
    from strait.planning.plan.pauses import Scope

    scope = Scope.parse(what)
    done = pausing.pause(load_link(config, link), link, scope, by=by or _myself(), reason=reason)
    _tell(link, f"{scope} is paused", done, as_json=as_json)


def resume(config: ConfigOption, link: LinkOption, what: WhatArgument = "", as_json: JsonOption = False) -> None:
    """Go on with what was paused under this very name, exactly where it stopped."""
    from strait.config.links import load_link
    from strait.control import pausing
    from strait.planning.plan.pauses import Scope

    scope = Scope.parse(what)
    done = pausing.resume(load_link(config, link), link, scope)
    _tell(link, f"{scope} is not paused any more", done, as_json=as_json)


def _myself() -> str:
    import getpass
    import socket

    return f"{getpass.getuser()}@{socket.gethostname()}"


def _tell(link: str, text: str, done: "Edited", *, as_json: bool) -> None:
    from strait.planning.plan.pauses import described

    if as_json:
        print_json(
            {
                "link": link,
                "pauses": [item.model_dump() for item in done.pauses],
                "plans": {plan.group: plan.version for plan in done.published},
            }
        )
        return
    plans = ", ".join(f"plan {plan.version} of group {plan.group}" for plan in done.published)
    typer.echo(f"link {link}: {text}; " + (f"published {plans}" if plans else "no partition is concerned"))
    for item in done.pauses:
        typer.echo(f"paused    {described(item)}")
