"""Detection of another instance that does the same work, from the reports topic of its link. Pure; times are in seconds of the
monotonic clock."""

from strait.config.app_spec import AppSpec
from strait.state.codec import encode_key
from strait.state.keys import GroupSyncKey, ReportKey

_BACK_SECONDS = 5.0
"""The other instance must have reported for this long before an instance that took over hands the work back."""


class OtherInstance:
    """Whether it reports.

    Args:
        key: prefix of the keys of its reports.
        application: this instance, whose own reports do not count.
        silent_seconds: time without a report after which the other instance is considered stopped.
    """

    def __init__(self, key: bytes, application: str, silent_seconds: float, now: float) -> None:
        self._key = key
        self._own = f'"application":"{application}"'.encode()
        self._silent_seconds = silent_seconds
        self._silent_since = now  # unless a report has arrived since
        self._heard_at = self._began_at = float("-inf")  # its last report; and the start of those without a pause
        self._end = -1  # of the log, as asked for since the last report; -1: not asked for

    @classmethod
    def of_slot(cls, group: str, slot: int, application: str, silent_seconds: float, now: float) -> "OtherInstance":
        """Return another instance of a slot."""
        key = encode_key(ReportKey(group=group, slot=slot, part=0))
        return cls(key.removesuffix(b"0}"), application, silent_seconds, now)

    @classmethod
    def of_group_sync(cls, spec: AppSpec, application: str, silent_seconds: float, now: float) -> "OtherInstance":
        """Return another instance that synchronizes consumer groups."""
        return cls(encode_key(GroupSyncKey(consumer_groups=spec.link)), application, silent_seconds, now)

    def hear(self, key: bytes | None, value: bytes | None, now: float) -> None:
        """Take a record of the reports topic; any other than its reports is ignored."""
        if not (key or b"").startswith(self._key) or self._own in (value or b""):
            return
        if now - self._heard_at > self._silent_seconds:
            self._began_at = now
        self._heard_at = now
        self._end = -1

    def needs_end(self, now: float) -> bool:
        """Return whether the end of the log is needed now: a broker that does not respond delivers no reports at all, so
        silence counts only if every report before that end was read."""
        if now - max(self._heard_at, self._silent_since) < self._silent_seconds:
            self._end = -1
            return False
        return self._end < 0

    def ends_at(self, end: int) -> None:
        """Take the end of the log, as the broker has just returned it."""
        self._end = end

    def unknown(self, now: float) -> None:
        """The end of the log cannot be known: wait again."""
        self._silent_since = now

    def is_gone(self, now: float, next_offset: int) -> bool:
        """Return whether it has not reported for too long, and the broker has confirmed that. ``next_offset``: first record
        that was not read yet. Other instances may continue to report."""
        return not self.needs_end(now) and 0 <= self._end <= next_offset

    def is_back(self, now: float) -> bool:
        """Return whether it has reported for 5 s without a pause."""
        return now - self._heard_at < self._silent_seconds and now - self._began_at >= _BACK_SECONDS
