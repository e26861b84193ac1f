"""Ports of the demo: for each, the requested one, else the default, else the next free one."""

import socket

from strait.demo.folder import Ports
from strait.embedded.ports import require_free
from strait.errors import SetupError

AIRFLOW, SOURCE, DESTINATION = 8080, 19092, 29092
_TASK_LOGS, _TRIGGER_LOGS = 8793, 8794
_FURTHER = 200


def choose_ports(*, airflow: int | None, source: int | None, destination: int | None) -> Ports:
    """Return free ports. None: any port. Raises SetupError if a requested port is in use or was requested twice, or if
    none is free."""
    taken: set[int] = set()

    def choose(asked: int | None, usual: int, option: str) -> int:
        if asked is not None:
            require_free(asked, f"demo {option}")
            if asked in taken:
                raise SetupError(f"demo {option}: port {asked} was given to another part", hint="give it another one")
        port = asked or next((p for p in range(usual, usual + _FURTHER) if p not in taken and is_free(p)), None)
        if port is None:
            raise SetupError(f"demo: no port from {usual} to {usual + _FURTHER - 1} is free", hint=f"give {option}")
        taken.add(port)
        return port

    # Requested ports first, so that no default takes one of them.
    wishes = [(airflow, AIRFLOW, "--airflow-port"), (source, SOURCE, "--source-port")]
    wishes += [(destination, DESTINATION, "--destination-port")]
    chosen = {option: choose(asked, usual, option) for asked, usual, option in wishes if asked is not None}
    chosen |= {option: choose(None, usual, option) for asked, usual, option in wishes if asked is None}
    return Ports(
        airflow=chosen["--airflow-port"],
        source=chosen["--source-port"],
        destination=chosen["--destination-port"],
        task_logs=choose(None, _TASK_LOGS, "an Airflow log port"),
        trigger_logs=choose(None, _TRIGGER_LOGS, "an Airflow log port"),
    )


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port now, on 127.0.0.1 and on all addresses."""
    for address in ("127.0.0.1", "0.0.0.0"):  # noqa: S104  Airflow's log servers listen on all
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError:
                return False
    return True
