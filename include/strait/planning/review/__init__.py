"""A plan as a person reads it before it counts: text, differences, effects, what must be approved."""
