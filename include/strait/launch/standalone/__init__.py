"""Applications whose drivers run on the workers of a Spark Standalone cluster."""
