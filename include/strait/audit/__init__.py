"""Audit of replicated topics: compares the contents of both logs, and certifies the result."""
