"""Conversion of other tools' configurations to a links file. Nothing in them is dropped silently."""
