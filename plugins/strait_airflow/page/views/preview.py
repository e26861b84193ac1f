"""Preview of a change of a link's topics, shown before the user makes it. Pure."""

from typing import Any

from strait.config.links import Link
from strait.control.forecast import Forecast
from strait.planning.plan.planner import Proposal
from strait.planning.review.effects import effects, without_approval
from strait.planning.review.text import waiting_data
from strait.reasons import Reason
from strait_airflow.page.views.answers import Data

MOST_SHOWN = 200
"""Maximum length of each list: a regular expression may match thousands of topics, more than a user reads."""


def preview_of(link: Link, proposal: Proposal, ahead: Forecast) -> Data:
    """Return the effects, new waiting entries, skipped topics (except those not selected), and the forecast.

    Each list is `{"total": …, "shown": […]}`. ``link`` is the link that the proposal was made for.
    """
    before = set() if proposal.before is None else set(proposal.before.waiting)
    after = proposal.draft.waiting if proposal.draft is not None else ()
    left_out = [skip for skip in proposal.survey.selection.skipped if skip.reason is not Reason.NOT_SELECTED]
    return {
        "effects": _some(
            [
                {"sign": one.sign, "verb": one.verb, "subject": one.subject, "detail": one.detail}
                for one in sorted((*effects(link, proposal), *without_approval(link, proposal)))
            ]
        ),
        "waits": _some([waiting_data(item) for item in after if item not in before]),
        "left_out": _some(
            [{"topic": skip.topic, "detail": skip.detail} for skip in left_out if not skip.topic.startswith("__")]
        ),
        "needs_approval": link.approval == "required",
        "forecast": _forecast(ahead),
    }


def _forecast(ahead: Forecast) -> Data:
    found = ahead.as_data()
    backfill = {name: found["backfill"][name] for name in ("records", "bytes", "seconds")}
    return found | {"backfill": backfill, "risks": _some(found["risks"])}


def _some(items: list[Any]) -> Data:
    return {"total": len(items), "shown": items[:MOST_SHOWN]}
