"""The two clusters of a link, for code that queries them about consumers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from strait.config.app_spec import AppSpec
from strait.config.links import LinksFile


@dataclass(frozen=True, slots=True)
class LinkClusters:
    """Names of a link and of its clusters, and each cluster's librdkafka properties."""

    link: str
    source: str
    destination: str
    properties: Mapping[str, Mapping[str, str]] = field(repr=False)

    @classmethod
    def of(cls, file: LinksFile, link: str) -> "LinkClusters":
        """Return the clusters of a link in a links file."""
        ends = file.links[link].source, file.links[link].destination
        return cls(link, *ends, {end: file.clusters[end] for end in ends})

    @classmethod
    def of_application(cls, spec: AppSpec) -> "LinkClusters":
        """Return the clusters of the link that an application replicates."""
        properties = {spec.source_name: spec.source, spec.destination_name: spec.destination}
        return cls(spec.link, spec.source_name, spec.destination_name, properties)
