"""Spark's daemon of Python workers, with the engine in memory before it forks them.

Otherwise every slot would load it for itself, for a second of CPU, while others are copying already.
"""

from pyspark import daemon

import strait.engine.slot  # noqa: F401  what the workers need

if __name__ == "__main__":
    daemon.manager()
