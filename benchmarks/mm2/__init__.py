"""`make bench`: Strait and MirrorMaker 2 copy the same data on the same brokers, and what each of them took is
printed."""
