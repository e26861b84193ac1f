"""A `spark-submit` that stands in for Spark's."""

import sys
from pathlib import Path

from strait.launch.spark_home import find_spark_submit

_SCRIPT = """#!{python}
import os, signal, sys
from pathlib import Path
real, runs, here = Path({real!r}), {runs!r}, {here!r}
if runs and any("/" + runs + "/" in word for word in sys.argv):
    path = os.pathsep.join(each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each != here)
    os.execve(real, [real, *sys.argv[1:]], os.environ | {{"SPARK_HOME": str(real.parents[1]), "PYTHONPATH": path}})
signal.signal(signal.SIGTERM, lambda *_: exit(0))
signal.pause()
"""


def idle_spark_submit(path: Path, *, runs: str = "") -> Path:
    """Make one that runs, does nothing, and ends when it is asked to, although it is started with SIGTERM ignored.

    Args:
        path: ``<directory>/pyspark/bin/spark-submit``, if Python finds it by ``directory`` on its path.
        runs: the name of an application that Spark's own `spark-submit` runs.
    """
    path.parent.mkdir(parents=True)
    here = str(path.parents[2])
    path.write_text(_SCRIPT.format(python=sys.executable, real=str(find_spark_submit()), runs=runs, here=here))
    path.chmod(0o700)
    return path
