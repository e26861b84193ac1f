"""The Structured Streaming application that runs replication. The only package that imports pyspark."""
