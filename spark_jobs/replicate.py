"""spark-submit entry point: run one replication application until it is stopped or cannot go on."""

import argparse
import sys
from pathlib import Path

from strait.spark.session import begin_session


def main() -> int:
    """Returns the exit code: see strait.launch.base."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="application spec, JSON (strait/config/app_spec.py)")
    parser.add_argument("--properties", type=Path, help="Spark properties of the session, a JSON object")
    arguments = parser.parse_args()
    session = begin_session(arguments.properties)

    from strait.spark.app import run  # takes as long as Spark does for its part

    return run(arguments.spec, session)


if __name__ == "__main__":
    sys.exit(main())
