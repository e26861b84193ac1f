"""Selection of the topics to replicate, their policies and their start offsets."""
