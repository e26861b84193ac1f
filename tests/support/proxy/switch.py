"""What an operator's hook does to the gateway: ``switch.py FILE PORTS TO`` leads it to the ``source`` or the
``destination`` of the failover that it is told of, or to none."""

import json
import sys
from pathlib import Path


def main(file: str, ports: str, to: str) -> None:
    """``ports``: JSON, the name of a cluster -> where the gateway reaches it."""
    told = json.load(sys.stdin)
    target = str(json.loads(ports)[told[to]["name"]]) if to != "none" else ""
    new = Path(f"{file}.new")
    new.write_text(target)
    new.rename(file)
    sys.stdout.write(f"leads to {target or 'none'}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
