"""Where a partition goes on after any doubt: the one recovery path."""
