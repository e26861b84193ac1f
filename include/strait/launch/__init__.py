"""Submit, find and stop the Spark applications that run replication. Imports neither Spark nor Airflow."""
