"""The page's HTTP API, one module per view."""
