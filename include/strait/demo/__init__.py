"""`strait demo`: two Kafka clusters, a generator of data, Airflow and a link between them, all on this machine."""
