"""Brokers, and what administrators and clients do to them."""
