"""Strait: Kafka cluster-to-cluster replication on Spark, run from Airflow."""

__version__ = "0.1.0"
