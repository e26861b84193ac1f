"""One link from facts to published plans: observe, plan, apply."""
