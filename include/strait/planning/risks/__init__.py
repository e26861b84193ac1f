"""Risks of a plan, reported before it is applied."""
