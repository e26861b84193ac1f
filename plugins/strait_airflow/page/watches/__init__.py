"""Observations that the page makes in the background, one module per kind of data."""
