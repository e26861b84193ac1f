"""The copier: one pump for each slot. Sockets and a clock, but neither Spark nor Airflow."""
