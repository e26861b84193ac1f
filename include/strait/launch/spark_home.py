"""Find the Spark that applications run on."""

import importlib.util
import sys
from pathlib import Path

from strait.errors import SetupError


def find_spark_submit() -> Path:
    """Return `spark-submit` of the pyspark that this interpreter would import, without importing it. Raises
    SetupError."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SetupError(f"{sys.executable} has no pyspark", hint="run `make install`")
    return Path(spec.submodule_search_locations[0]) / "bin" / "spark-submit"
