"""A real Prometheus, and the alerts and the dashboard of docs/monitoring."""
