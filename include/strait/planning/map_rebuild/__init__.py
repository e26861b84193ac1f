"""Rebuilds a lost offset map from the contents of both logs. Pure."""
