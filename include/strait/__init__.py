"""Strait: Kafka cluster-to-cluster replication on Spark, run from Airflow."""

__version__ = "0.2.0.dev0"
