"""Responses of the page, computed from observations. Pure."""
