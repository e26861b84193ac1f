"""A file of the ledger, as a driver writes it."""

import subprocess
import sys

CODE = """
import sys
from strait.spark.ledger_files import parquet
assert parquet([])
assert "pandas" not in sys.modules
import pandas
"""


def test_it_is_written_without_pandas_which_stays_available() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True, env={"PYTHONPATH": ":".join(filter(None, sys.path))})
