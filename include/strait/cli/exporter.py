"""`strait exporter`: metrics of links for Prometheus."""

import ipaddress
import logging
import os
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from strait.cli.options import DEFAULT_FILE, ConfigOption, LinksArgument, known_links
from strait.cli.printing import PrintableFormatter, echo
from strait.config.links import load_link
from strait.errors import SetupError
from strait.exporter import TOKEN_VARIABLE
from strait.exporter.rendering import Options, registry_of
from strait.exporter.server import MetricsServer
from strait.exporter.watch import LinkFollower
from strait.text import plural

_END_SECONDS = 2.0


def exporter(
    links: LinksArgument = None,
    config: ConfigOption = DEFAULT_FILE,
    address: Annotated[str, typer.Option("--address", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0: any free one.", min=0, max=65535)] = 9721,
    interval: Annotated[float, typer.Option("--interval", help="Seconds between two looks.", min=1, max=3600)] = 10.0,
    by_partition: Annotated[
        bool, typer.Option("--by-partition", help="Metrics of each partition instead of each topic.")
    ] = False,
    most: Annotated[
        int, typer.Option("--most", help="Topics or partitions of a link at most, furthest behind first.", min=1)
    ] = 5000,
    conventional: Annotated[
        bool, typer.Option("--conventional", help="Also the names of kafka_exporter and MirrorMaker 2.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help=f"Bearer token, mode 0600. Default: ${TOKEN_VARIABLE}.", show_default=False),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Answer whoever reaches a port that is not on loopback.")
    ] = False,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="PEM certificate chain, for HTTPS.", show_default=False)
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="PEM key, unless it is in that file.", show_default=False)
    ] = None,
) -> None:
    """Serve metrics of links to Prometheus, until Ctrl-C.

    Each link is queried in the background, so an unreachable cluster delays no other link. Metrics name topics, groups and
    hosts: beyond loopback, a token is required unless `--no-token` is given.
    """
    token = _token(token_file)
    if not token and not no_token and not _is_loopback(address):
        raise SetupError(
            f"exporter: listening on {address} without a token: whoever reaches it would read names of topics and hosts",
            hint="give --token-file, or --no-token",
        )
    handler = logging.StreamHandler()
    handler.setFormatter(PrintableFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # librdkafka logs each connection attempt; the watch itself reports an unreachable link.
    logging.getLogger("strait.librdkafka").setLevel(logging.CRITICAL)
    watches = [
        LinkFollower(partial(load_link, config, name), name, interval) for name in known_links(config, links or ())
    ]
    registry = registry_of(
        lambda: [found for watch in watches if (found := watch.newest) is not None],
        Options(by_partition=by_partition, most=most, conventional=conventional),
    )
    server = MetricsServer(registry, address, port, token=token, certificate=certificate, key=key)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    for watch in watches:
        watch.start()
    server.start()
    scheme, host = "http" if certificate is None else "https", f"[{address}]" if ":" in address else address
    echo(f"metrics of {plural(len(watches), 'link')} at {scheme}://{host}:{server.port}/metrics", err=True)
    ended.wait()
    server.stop()
    for watch in watches:
        watch.stop()
    if not all(watch.ended(_END_SECONDS) for watch in watches):
        # librdkafka's threads may block on an interpreter that is shutting down, and no output is pending.
        os._exit(0)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _token(file: Path | None) -> str:
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "")
    try:
        with file.open(encoding="utf-8") as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise SetupError(f"exporter: token file {file}: others may read it", hint=f"chmod 600 {file}")
            token = opened.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"exporter: token file {file}: cannot be read: {error}") from error
    if not token:
        raise SetupError(f"exporter: token file {file}: is empty")
    return token
