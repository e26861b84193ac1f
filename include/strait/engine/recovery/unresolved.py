"""The exception that ends a lookup without a position."""

from strait.engine.recovery.producer_state import Refusal
from strait.net import error_policy
from strait.reasons import Reason


class Unresolved(Exception):
    """This lookup could not determine the position."""

    def __init__(
        self, reason: Reason, detail: str, wait_seconds: tuple[float, float], *, refresh: bool = False
    ) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.wait_seconds, self.refresh = reason, detail, wait_seconds, refresh

    @classmethod
    def of(cls, answer: error_policy.Answer, detail: str) -> "Unresolved":
        return cls(answer.reason, detail, answer.wait_seconds, refresh=True)

    @classmethod
    def refused(cls, refusal: Refusal) -> "Unresolved":
        answer = error_policy.answer(error_policy.PRODUCE, refusal.code, Reason.DESTINATION_UNREACHABLE)
        return cls.of(answer, f"looking up {refusal.what}: {error_policy.name(refusal.code)}")

    @classmethod
    def until_decided(cls, reason: Reason, detail: str) -> "Unresolved":
        """Return one that only an operator's change resolves; the position is looked up again at intervals."""
        return cls(reason, detail, error_policy.wait_for(reason))
