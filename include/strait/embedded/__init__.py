"""Real Kafka clusters and a real Airflow on this machine, for the demo, the tests and the benchmarks."""
