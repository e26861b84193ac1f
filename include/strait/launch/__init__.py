"""Starts, finds and stops Spark applications."""
