"""What Spark loads before anything is copied."""

import subprocess
import sys


def test_processes_that_neither_plan_nor_copy_load_nothing_for_it() -> None:
    """Each begins when the last one has ended, and the first record waits for all of them."""
    code = "import sys, strait.spark.source; print([name for name in ('pydantic', 'confluent_kafka', 'kafka', 'aiokafka') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
