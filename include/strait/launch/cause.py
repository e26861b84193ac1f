"""Determine why an application ended, in a line or two for operators, from its exit code and its log."""

import re
import signal
from collections.abc import Iterable, Mapping

from strait.config import credentials
from strait.config.app_spec import Spec
from strait.errors import ConfigError

LAST_WORDS = "strait: "
"""Start of the line in which an application itself reports why it ends."""

_NOISE = re.compile(r"\s|Traceback |Caused by: |\.\.\. \d+ more|\^+$|Killed$|Terminated$")
_NO_ERROR = re.compile(r"\S+ \S+ (DEBUG|INFO|WARN|WARNING)\b")
"""Start of a log line below an error, of Log4j and of Python alike: date, time, level."""
_SECRET = re.compile(r"password|secret|token|credential|jaas|state\.key|\.pem$|\.key", re.IGNORECASE)


def cause_of(exit_code: int | None, log: str, spec: Spec | None) -> str:
    """Return how the application ended and its last message.

    Args:
        log: the end of its output.
        spec: the spec that it ran with. Secrets that it contains or refers to are masked. None if it is lost or from
            another version; the log then reports that error, and contains no secret.
    """
    killed = exit_code is None or exit_code > 128
    lines = log.splitlines()
    said = without_secrets(_last_words(lines, errors_only=killed), spec)
    nothing = "its log has no error" if any(line.strip() for line in lines) else "its log is empty"
    return f"{_ending(exit_code)}: {said}" if said else f"{_ending(exit_code)}; {nothing}"


def without_secrets(text: str, spec: Spec | None) -> str:
    """Return the text with the secrets that the spec contains or refers to replaced by ``***``."""
    for secret in _secrets(spec):
        text = text.replace(secret, "***")
    return text


def _ending(exit_code: int | None) -> str:
    if exit_code is None:
        return "killed (no exit status was written)"
    if exit_code > 128:  # the convention of shells
        return f"killed by signal {exit_code - 128} ({_signal_name(exit_code - 128)})"
    return f"exit code {exit_code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _last_words(lines: list[str], *, errors_only: bool) -> str:
    """Return the application's own last message, else the last line that is not part of a stack trace: an error, or, unless
    ``errors_only``, any. A process that is killed logs nothing of it, so its last warning is not the cause."""
    own = (line.removeprefix(LAST_WORDS) for line in reversed(lines) if line.startswith(LAST_WORDS))
    other = [line for line in reversed(lines) if line and not _NOISE.match(line)]
    errors = (line for line in other if not _NO_ERROR.match(line))
    return next(own, None) or next(errors, "") or (other[0] if other and not errors_only else "")


def _secrets(spec: Spec | None) -> Iterable[str]:
    if spec is None:
        return ()
    properties = [pair for name, given in spec.clusters for pair in _as_used(name, given).items()]
    return [value for key, value in properties if value and _SECRET.search(key)]


def _as_used(cluster: str, properties: Mapping[str, str]) -> Mapping[str, str]:
    try:
        return credentials.resolve(cluster, properties)
    except ConfigError:
        return properties  # the content of a deleted file is unknown and cannot be masked
