"""A slot's history, aggregated as it runs: a point for each minute and each hour."""

from typing import Literal

from strait.state.report_changes import SPANS_MS, HistoryPoint


def _most(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


class _Span:
    def __init__(self, kind: Literal["minute", "hour"], at_ms: int, totals: tuple[int, int]) -> None:
        self.kind = kind
        self.at_ms = at_ms
        self.totals = totals
        self.lag_records: int | None = None
        self.lag_seconds: float | None = None
        self.latency_ms_p50: float | None = None
        self.latency_ms_p99: float | None = None

    def is_over(self, now_ms: int) -> bool:
        return now_ms // SPANS_MS[self.kind] != self.at_ms // SPANS_MS[self.kind]

    def point(self, group: str, slot: int, until_ms: int, totals: tuple[int, int]) -> HistoryPoint:
        return HistoryPoint(
            group=group,
            slot=slot,
            span=self.kind,
            at_ms=self.at_ms,
            seconds=round(max(0, until_ms - self.at_ms) / 1000, 3),
            records=totals[0] - self.totals[0],
            bytes=totals[1] - self.totals[1],
            lag_records=self.lag_records,
            lag_seconds=self.lag_seconds,
            latency_ms_p50=self.latency_ms_p50,
            latency_ms_p99=self.latency_ms_p99,
        )


class SlotHistory:
    """Aggregates the values observed every second, and returns the completed points."""

    def __init__(self, group: str, slot: int, now_ms: int) -> None:
        self._group = group
        self._slot = slot
        self._spans = [_Span("minute", now_ms, (0, 0)), _Span("hour", now_ms, (0, 0))]

    def observe(
        self,
        now_ms: int,
        totals: tuple[int, int],
        *,
        lag_records: int | None,
        lag_seconds: float | None,
        latency_ms_p50: float | None = None,
        latency_ms_p99: float | None,
    ) -> list[HistoryPoint]:
        """Add current values and return the completed points. ``totals``: records and bytes since the start."""
        over = []
        for number, span in enumerate(self._spans):
            if span.is_over(now_ms):
                end_ms = (span.at_ms // SPANS_MS[span.kind] + 1) * SPANS_MS[span.kind]
                over.append(span.point(self._group, self._slot, min(now_ms, end_ms), totals))
                begin_ms = now_ms // SPANS_MS[span.kind] * SPANS_MS[span.kind]
                span = self._spans[number] = _Span(span.kind, max(begin_ms, min(now_ms, end_ms)), totals)
            lag = _most(span.lag_records, lag_records)
            span.lag_records = None if lag is None else int(lag)
            span.lag_seconds = _most(span.lag_seconds, lag_seconds)
            span.latency_ms_p50 = _most(span.latency_ms_p50, latency_ms_p50)
            span.latency_ms_p99 = _most(span.latency_ms_p99, latency_ms_p99)
        return over

    def close(self, now_ms: int, totals: tuple[int, int]) -> list[HistoryPoint]:
        """Return the points of the current minute and hour, which are incomplete."""
        return [span.point(self._group, self._slot, now_ms, totals) for span in self._spans if span.at_ms < now_ms]
