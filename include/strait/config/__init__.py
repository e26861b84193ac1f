"""The links file and the names in it: the validated configuration, without code that acts on it."""
