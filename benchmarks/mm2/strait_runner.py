"""Strait as a user runs it: a links file and `strait run`."""

import json
import sys
from pathlib import Path

from mm2.copier import Command
from strait.embedded.kafka import Cluster

NAME = "strait"
SLOT_MEMORY_MIB = 128
SLOT_BUDGET_BYTES = SLOT_MEMORY_MIB << 20
_PREFIX = "copy."
_SLOT_COMMANDS = r"strait\.spark\.(daemon pyspark\.worker|head_start)"
"""The Python processes of Spark's tasks and of head starts, which may have copied all before Spark runs."""
_MAIN = "from strait.cli.main import main; main()"


def command(directory: Path, source: Cluster, destination: Cluster, topic: str, *, slots: int = 1) -> Command:
    """Write the links file into ``directory``."""
    link = f"bench-{topic}"
    links_file = directory / "links.json"
    links_file.write_text(
        json.dumps(
            {
                "clusters": {"source": source.client_properties, "destination": destination.client_properties},
                "links": {
                    link: {
                        "source": "source",
                        "destination": "destination",
                        "topics": {"include": [topic]},
                        "naming": {"policy": "prefix", "prefix": _PREFIX},
                        "replication_factor": len(destination.broker_ids),
                        "groups": {"default": {"slots": slots}},
                        "slot_memory_mib": SLOT_MEMORY_MIB,
                    }
                },
            }
        ),
        encoding="utf-8",
    )
    argv = (sys.executable, "-c", _MAIN, "run", "--config", str(links_file), "--link", link)
    return Command(
        NAME,
        argv,
        directory / "strait.log",
        f"{_PREFIX}{topic}",
        _SLOT_COMMANDS,
        environment={"STRAIT_HOME": str(directory / "home")},  # its ledger and logs go where all else goes
    )
