"""A link's figures for Prometheus: observed in the background, served by HTTP, or rendered for somebody else's server."""
