"""The cause is found in texts as Spark 4.2 really prints them, shortened."""

from strait.spark.failure import cause_of, is_failure_to_start, root_cause

IN_A_SLOT = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] Reason: Traceback (most recent call last):
  File "pyspark/errors/exceptions/captured.py", line 257, in deco
    raise converted from None
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "strait/spark/source.py", line 90, in read
{error}
 SQLSTATE: 39000 SQLSTATE: XXKST
=== Streaming Query ===
Current State: ACTIVE
"""

IN_JAVA = """\
An error occurred while calling o41.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2898)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 17 more
"""

AT_THE_START = """\
An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkIllegalArgumentException: [INVALID_DRIVER_MEMORY] System memory 268435456 must be at least 471859200.
Please increase heap size using the --driver-memory option.
\tat org.apache.spark.memory.UnifiedMemoryManager$.getMaxMemory(UnifiedMemoryManager.scala:473)
"""


def test_this_package_s_own_error_comes_with_its_hint_and_without_its_class() -> None:
    text = IN_A_SLOT.format(error="strait.errors.NotAuthorized: cluster b: writing orders: denied (grant WRITE)")
    assert root_cause(text) == "cluster b: writing orders: denied (grant WRITE)"


def test_another_error_of_python_comes_with_its_class() -> None:
    assert root_cause(IN_A_SLOT.format(error="ValueError: boom")) == "ValueError: boom"


def test_of_java_s_errors_the_innermost_counts() -> None:
    assert root_cause(IN_JAVA) == "IOException: No space left on device"


def test_an_error_of_java_without_a_cause_speaks_for_itself() -> None:
    assert root_cause(AT_THE_START).startswith("SparkIllegalArgumentException: [INVALID_DRIVER_MEMORY] System memory")


def test_of_anything_else_the_first_line_is_taken() -> None:
    assert root_cause("\nPython worker failed to connect back.\n at x") == "Python worker failed to connect back."
    assert root_cause("") == "no reason was given"


NO_WORKER = """\
[STREAM_FAILED] Query [id = 1] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST
=== Streaming Query ===
Caused by: java.net.SocketTimeoutException: Timed out while waiting for the Python worker to connect back
"""


def test_a_process_that_starts_too_slowly_is_told_with_what_to_do_and_is_worth_another_try() -> None:
    assert is_failure_to_start(NO_WORKER)
    assert not is_failure_to_start(IN_JAVA)
    assert cause_of(NO_WORKER) == (
        "Spark started a Python process, which did not connect back within 10 s (the host is overloaded: free CPU or "
        "memory on it, or move the application; it is started again)"
    )
    assert cause_of(IN_JAVA) == root_cause(IN_JAVA)


def test_no_cause_quotes_a_value() -> None:
    text = (
        "org.apache.spark.SparkRuntimeException: "
        '[INVALID_VARIANT_CAST] The variant value `"a secret"` cannot be cast into "INT". SQLSTATE: 22023\n\tat x.y'
    )
    assert root_cause(text) == "SparkRuntimeException: [INVALID_VARIANT_CAST] for a value, which is left out here"
    assert "no_table" in root_cause(text.replace("22023", "42P01").replace("a secret", "no_table"))
