"""Checks that a proposal makes exactly the changes that an operator was shown, no more and no less. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from strait.config.validation import validated
from strait.errors import ApprovalMissing, ConfigError
from strait.json_text import value_of
from strait.planning.plan.planner import Proposal
from strait.planning.review.clusters import UNKNOWN, Clusters, cluster_differences
from strait.planning.review.effect import Effect, removals_first
from strait.planning.review.effects import Effects, differences, fingerprint, unseen

_LINES_MOST = 20
APPROVING = "`strait plan --out` shows them, `strait apply` with that file does them"


@dataclass(frozen=True, slots=True)
class Approval:
    """Permitted changes.

    ``shown``: the effects that were shown, if any; None: all are permitted. ``clusters``: the source and destination they
    were shown for.
    """

    link: str
    shown: Effects | None
    clusters: Clusters = UNKNOWN

    @classmethod
    def of(cls, link: str, setting: str, shown: "ShownPlan | None") -> "Approval":
        """Return the approval of the shown plan, if there is one, else the one by the link's `approval` setting."""
        if shown is not None:
            return cls(link, shown.shown, shown.clusters)
        return cls(link, () if setting == "required" else None)

    def part_of(self, proposal: Proposal) -> Proposal:
        """Return the part of a proposal that needs no approval, if no plan was shown and there is such a part, else the
        whole of it, to be checked."""
        asked = self.shown == () and self.clusters == UNKNOWN
        return proposal.permitted if asked and proposal.permitted is not None else proposal

    def check(self, now: Effects, clusters: Clusters) -> None:
        """Check, before any change, that the effects and clusters are exactly those that were shown.

        Raises:
            ApprovalMissing: they differ, or approval is required and no plan was shown.
        """
        self._refuse(cluster_differences(self.clusters, clusters))
        if self.shown is None or (not self.shown and not now):
            return
        if not self.shown:
            headline, *lines = pending_lines(now)
            raise ApprovalMissing(f"link {self.link}: {headline}", [line.strip() for line in lines], hint=APPROVING)
        self._refuse(differences(self.shown, now))

    def check_rest(self, now: Effects, clusters: Clusters) -> None:
        """Check, after some of the effects were applied, that there are no others and that the clusters are the same.

        Raises:
            ApprovalMissing: there are other effects, or the clusters differ.
        """
        self._refuse(cluster_differences(self.clusters, clusters))
        if self.shown is not None:
            self._refuse(unseen(self.shown, now))

    def _refuse(self, lines: list[str]) -> None:
        if lines:
            raise ApprovalMissing(
                f"link {self.link}: what would be done now is not what was shown:",
                _few(lines),
                hint=f"run: strait plan --link {self.link} --out plan.json",
            )


class ShownPlan(BaseModel):
    """The file that `strait plan --out` writes and `strait apply` reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    v: int
    link: str
    fingerprint: str
    effects: tuple[tuple[str, str, str], ...]
    text: str
    clusters: Clusters = UNKNOWN

    @classmethod
    def of(cls, link: str, effects: Effects, text: str, clusters: Clusters = UNKNOWN) -> "ShownPlan":
        rows = tuple((effect.verb, effect.subject, effect.detail) for effect in effects)
        said = fingerprint(effects, clusters)
        return cls(v=1, link=link, fingerprint=said, effects=rows, text=text, clusters=clusters)

    @classmethod
    def parse(cls, text: str, *, where: str) -> "ShownPlan":
        """Parse the text of a plan file.

        Raises:
            ConfigError: it is not a plan file, or it was edited.
        """
        try:
            raw: Any = value_of(text)
        except ValueError as error:
            raise ConfigError(where, [f"is not JSON: {error}"], hint="`strait plan --out` writes it") from None
        found = validated(cls, raw, where)
        if found.v != 1:
            raise ConfigError(where, [f"has v {found.v}, and this version of Strait reads v 1"])
        if found.fingerprint != fingerprint(found.shown, found.clusters):
            raise ConfigError(where, ["its fingerprint is not that of its effects: it was edited"])
        return found

    @property
    def shown(self) -> Effects:
        return tuple(Effect(*row) for row in self.effects)

    def as_data(self) -> Mapping[str, Any]:
        return self.model_dump(mode="json")


def pending_lines(pending: Effects) -> list[str]:
    """Return changes that wait for approval, as human-readable lines; none if there are none."""
    if not pending:
        return []
    head = f"{len(pending)} change{'s wait' if len(pending) > 1 else ' waits'} for approval:"
    return [head, *_few([f"  {' '.join(str(effect).split())}" for effect in removals_first(pending)])]


def _few(lines: list[str]) -> list[str]:
    more = len(lines) - _LINES_MOST
    return [*lines[:_LINES_MOST], f"and {more} more"] if more > 0 else lines
