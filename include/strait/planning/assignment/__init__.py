"""Assigns partitions to task groups and slots, and bandwidth to slots."""
