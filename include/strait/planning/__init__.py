"""Decisions: facts in, plans out. No input or output, no clock: equal facts give equal plans."""
