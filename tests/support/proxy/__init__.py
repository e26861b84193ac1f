"""A proxy that cuts, delays, stalls and alters."""
