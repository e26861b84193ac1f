"""The Structured Streaming application that runs the copying. The only package that imports pyspark."""
