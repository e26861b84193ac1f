"""Origin of the settings that a plan is made from, and the link with the settings of its current plan. Pure."""

import hashlib
from dataclasses import dataclass

from strait.config.links import TOPICS, Link, parse_topics, with_origin, with_topics
from strait.state.schema import Plan, PlannedSettings

_DIGEST_CHARACTERS = 12


def planned_settings(link: Link) -> PlannedSettings:
    """Return the description of a link's settings that its plan contains.

    It has no secrets: those are properties of clusters.
    """
    topics = link.topics.model_dump_json(exclude_defaults=True)
    return PlannedSettings(
        digest=_digest(link.model_dump_json(exclude={"topics", "pool", "alerts", "assets"})),
        topics_digest=_digest(topics),
        origins=dict(link.origins),
        topics=topics if TOPICS in link.origins else "",
    )


@dataclass(frozen=True, slots=True)
class InForce:
    """Settings that the current plan was made from, next to the link in the links file.

    Attributes:
        settings: as recorded in the plan; None: there is no plan, or an older version made it without this record.
        configured: the link of the links file.
        version: of the plan; 0: there is none.
        same_topics: whether the plan was made from the topics in the links file.
        same_others: whether the plan was made from the other settings in the links file.
        published_at_ms: time of the plan, in ms since 1970.
    """

    settings: PlannedSettings | None
    configured: Link
    version: int = 0
    same_topics: bool = False
    same_others: bool = False
    published_at_ms: int = 0

    @property
    def elsewhere(self) -> str:
        """Origin of the current topics; "" if it is the links file."""
        return "" if self.settings is None else self.settings.origins.get(TOPICS, "")

    @property
    def link(self) -> Link:
        """The link of the links file, with the current topics if these came from elsewhere.

        It also records for which clusters Airflow has other properties; otherwise each plan made here would differ from
        each of Airflow's. Raises ConfigError if the topics name task groups that the links file does not have.
        """
        if self.settings is None:
            return self.configured
        link, where = self.configured, self.elsewhere
        for cluster in sorted(self.settings.origins.keys() & {link.source, link.destination} - {TOPICS}):
            link = with_origin(link, cluster, self.settings.origins[cluster])
        if not where:
            return link
        topics = parse_topics(self.settings.topics, where=f"{where} (plan {self.version})")
        return with_topics(link, topics, where=where)


def in_force(link: Link, plan: Plan | None) -> InForce:
    """Compare a link of a links file with its current plan.

    Args:
        plan: that of the `default` task group; None: there is none.
    """
    if plan is None or plan.settings is None:
        return InForce(None, link, 0 if plan is None else plan.version)
    settings, own = plan.settings, planned_settings(link)
    return InForce(
        *(settings, link, plan.version),
        *(settings.topics_digest == own.topics_digest, settings.digest == own.digest),
        plan.published_at_ms,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
