"""Review of a plan before it is applied: text, differences, effects, and approval."""
