"""Acknowledges losses of a link: an operator has taken note of them, so that only new ones are highlighted."""

from strait.config.route_names import is_meant
from strait.errors import ConfigError
from strait.state.link_handle import ConfiguredLink
from strait.state.publisher import Publication
from strait.state.schema import LossAcknowledgement
from strait.waiting import unix_ms


def acknowledge(
    link: ConfiguredLink, topic: str = "", *, by: str, reason: str, count: int | None = None
) -> LossAcknowledgement:
    """Acknowledge losses in the loss log; nothing is copied or changed by that.

    Args:
        topic: source topic, which includes all of its routes; empty: all.
        count: number of the losses that ``by`` has seen, of the topic or of all; None: those in the log now.

    Raises:
        ConfigError: there is none that is not acknowledged.
        StateError: the loss log cannot be read.
        PlanConflict, ClusterUnavailable, NotAuthorized
    """
    with link.state("plan", "losses") as state:

        def publish(publication: Publication) -> LossAcknowledgement:
            if (trouble := state.view.trouble("losses")) is not None:
                raise trouble
            log = state.view.losses
            routes = {loss.topic for loss in log.newest if topic and is_meant(topic, loss.topic)} - {topic}
            made = []
            for name in (topic, *sorted(routes)):
                seen = log.total(name) if count is None else min(count, log.total(name))
                losses = [
                    said
                    for loss, said in zip(log.newest, log.acknowledgements, strict=True)
                    if name in ("", loss.topic)
                ]
                if any(said is None for said in losses[:seen]):
                    made.append(
                        LossAcknowledgement(
                            link=link.name, topic=name, count=seen, by=by, at_ms=unix_ms(), reason=reason
                        )
                    )
            if not made:
                of = f" of topic {topic}" if topic else ""
                raise ConfigError(f"link {link.name}", [f"no loss{of} is left to acknowledge"])
            publication.publish((), losses=made)
            return made[0].model_copy(update={"topic": topic, "count": sum(one.count for one in made)})

        return link.publisher().until_published(state, publish)
