"""The replication engine: one replicator for each slot, on sockets and a clock, without Spark or Airflow."""
