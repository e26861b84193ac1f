"""A link's metrics for Prometheus: observed in the background, served over HTTP, or rendered for another server."""

TOKEN_VARIABLE = "STRAIT_EXPORTER_TOKEN"  # noqa: S105  its name
"""Environment variable with the token that a scrape must send as `Authorization: Bearer`."""
