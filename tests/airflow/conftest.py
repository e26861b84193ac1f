"""Airflow reads its settings when it is first imported, so they are set here, before any test module is."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

PROJECT = Path(__file__).parents[2]

HOME = tempfile.mkdtemp(prefix="strait-airflow-")
atexit.register(shutil.rmtree, HOME)

os.environ |= {
    "AIRFLOW_HOME": HOME,
    "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
}
