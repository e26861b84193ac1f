"""Configurations of other tools, translated into a links file. Nothing of them is dropped without a word."""
