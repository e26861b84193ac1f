"""The copier: one replicator for each slot. Sockets and a clock, but neither Spark nor Airflow."""
