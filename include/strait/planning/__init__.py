"""All decisions of the control plane. Pure: no I/O, no clock; equal facts give equal decisions, in the same order."""
