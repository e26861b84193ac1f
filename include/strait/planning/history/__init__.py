"""Rates and forecasts from recent reports, such as whether source retention overtakes replication."""
