"""Why an application ended, in a line: what its log says of it, and nothing that only happened before."""

import pytest

from strait.launch.cause import cause_of

WARNING = "2026-11-27 09:17:36,634 WARNING strait.net.security: cluster b: its credentials are sent unencrypted"
SPARKS = "26/11/27 09:17:36 WARN TaskSchedulerImpl: Initial job has not accepted any resources"
ERROR = "2026-11-27 09:17:40,001 ERROR strait.spark.app: no space left on device"


@pytest.mark.parametrize(
    ("exit_code", "lines", "cause"),
    [
        (None, [WARNING], "killed (no exit status was written); its log has no error"),
        (137, [WARNING, SPARKS], "killed by signal 9 (SIGKILL); its log has no error"),
        (137, [ERROR, WARNING], f"killed by signal 9 (SIGKILL): {ERROR}"),
        (1, [ERROR, SPARKS], f"exit code 1: {ERROR}"),
        (1, [SPARKS], f"exit code 1: {SPARKS}"),
        (1, [ERROR, "strait: the disk is full", SPARKS], "exit code 1: the disk is full"),
        (None, [""], "killed (no exit status was written); its log is empty"),
    ],
)
def test_a_warning_is_the_cause_only_of_an_exit_of_its_own_and_only_without_an_error(exit_code, lines, cause):
    assert cause_of(exit_code, "\n".join(lines), None) == cause
