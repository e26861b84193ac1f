"""The directory that holds all files of a running demo, and the names in it."""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from strait.config.home import home, shared
from strait.embedded.airflow import LocalAirflow
from strait.embedded.detached import Detached

SOURCE = "source"
DESTINATION = "destination"
LINK, BACK = "shop", "back"
LINKS = {LINK: (SOURCE, DESTINATION), BACK: (DESTINATION, SOURCE)}
"""Link -> its source and its destination."""

TOPICS = {LINK: ("orders", "payments", "invoices", "clicks"), BACK: ("shipments",)}
LOCK = "lock"

MOST_INVOICE_BYTES = 65_536
"""Maximum size of an invoice on the destination. `strait demo reject` writes a larger one."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports that the demo listens on: Airflow's log servers on all addresses, everything else on 127.0.0.1."""

    airflow: int
    source: int
    destination: int
    task_logs: int
    trigger_logs: int


class DemoFolder:
    """Paths and parts of the demo in ``root``; none of them needs to exist yet."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or home() / "demo"
        self.links_file = self.root / "links.yaml"
        self.strait_home = self.root / "strait"
        self.applications = self.strait_home / "applications"
        self.generator = Detached(self.root / "generator.pid.json")
        self.generator_log = self.root / "generator.log"
        self.airflow = LocalAirflow(
            self.root / "airflow",
            project=shared(),
            environment={"STRAIT_LINKS_FILE": str(self.links_file), "STRAIT_HOME": str(self.strait_home)},
        )

    @property
    def ports(self) -> Ports | None:
        """Ports chosen when the demo was started; None if it was not started."""
        try:
            return Ports(**json.loads(self._ports_file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def lay_out(self, ports: Ports) -> None:
        """Write the ports, and the links file that uses them."""
        self._ports_file.write_text(json.dumps(asdict(ports)), encoding="utf-8")
        self.links_file.write_text(yaml.safe_dump(links(ports), sort_keys=False), encoding="utf-8")

    @property
    def clusters(self) -> dict[str, str]:
        """Cluster name -> bootstrap address; empty if the demo was not started."""
        ports = self.ports
        return {SOURCE: bootstrap(ports.source), DESTINATION: bootstrap(ports.destination)} if ports else {}

    def cluster_folder(self, name: str) -> Path:
        return self.root / name

    def clear(self) -> None:
        """Delete all files except the lock, but keep the directory. No part of the demo may be running."""
        for path in self.root.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()

    def remove(self) -> None:
        """Delete the directory with all its contents. No part of the demo may be running."""
        shutil.rmtree(self.root)

    @property
    def _ports_file(self) -> Path:
        return self.root / "ports.json"


def bootstrap(port: int) -> str:
    return f"127.0.0.1:{port}"


def links(ports: Ports) -> dict[str, object]:
    """Return the content of the demo's links file."""
    slots = {LINK: 2, BACK: 1}
    return {
        "clusters": {
            SOURCE: {"bootstrap.servers": bootstrap(ports.source)},
            DESTINATION: {"bootstrap.servers": bootstrap(ports.destination)},
        },
        "links": {
            link: {
                "source": source,
                "destination": destination,
                "topics": topics(link),
                "groups": {"default": {"slots": slots[link]}},
            }
            for link, (source, destination) in LINKS.items()
        },
    }


def topics(link: str) -> dict[str, object]:
    """Return a link's `topics` block in the links file, which is also the initial value of its Airflow Variable."""
    rule = {"match": "invoices", "overrides": {"max.message.bytes": str(MOST_INVOICE_BYTES)}}
    return {"include": list(TOPICS[link])} | ({"rules": [rule]} if link == LINK else {})
