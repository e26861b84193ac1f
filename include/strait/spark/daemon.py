"""Spark's daemon of Python workers, with the engine in memory before it forks them.

Otherwise every slot would load the engine separately, for a second of CPU, while others are already copying.
"""

import gc

from pyspark import daemon

import strait.engine.pool_task
import strait.engine.task  # noqa: F401  for the workers

if __name__ == "__main__":
    # Workers share memory with this process until they write to it, as a garbage collector does with all that it examines.
    gc.freeze()
    daemon.manager()
