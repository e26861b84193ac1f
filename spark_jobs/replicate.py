"""spark-submit entry point: run one replication application until it is stopped or cannot go on."""

import argparse
import sys
from pathlib import Path

from strait.spark.app import run


def main() -> int:
    """Returns the exit code: see strait.launch.base."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="application spec, JSON (strait/config/app_spec.py)")
    return run(parser.parse_args().spec)


if __name__ == "__main__":
    sys.exit(main())
