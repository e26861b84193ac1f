"""The links file and the names in it: what is wanted, checked, and nothing that does."""
