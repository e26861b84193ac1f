"""Schemas of the answers of the HTTP API, by which it is documented. Answers are not validated when they are made; tests
hold them equal to these."""
