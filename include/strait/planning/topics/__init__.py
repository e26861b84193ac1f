"""Which topics are copied, by which policy, and from where."""
