"""Which slot copies which partition, and how fast it may."""
