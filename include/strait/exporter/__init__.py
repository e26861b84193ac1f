"""A link's figures for Prometheus: observed in the background, served by HTTP, or rendered for somebody else's server."""

TOKEN_VARIABLE = "STRAIT_EXPORTER_TOKEN"  # noqa: S105  its name
"""Of the environment: what a scrape must send as `Authorization: Bearer`."""
