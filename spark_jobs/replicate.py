"""spark-submit entry point: run one replication application until it is stopped or cannot continue."""

import argparse
import sys
import traceback
from pathlib import Path

from strait.launch import supervised


def main() -> int:
    """Run the application and return its exit code: see strait.launch.base."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="application spec, JSON (strait/config/app_spec.py)")
    parser.add_argument("--properties", type=Path, help="Spark properties of the session, a JSON object")
    arguments = parser.parse_args()
    try:
        from strait.spark.session import begin_session

        session = begin_session(arguments.properties)

        from strait.spark.app import run  # takes as long as the session's start, beside it
    except Exception:  # noqa: BLE001  such as a damaged package; a cluster would restart it without limit
        traceback.print_exc()
        return supervised.fail_to_begin()
    return run(arguments.spec, session)


if __name__ == "__main__":
    sys.exit(main())
