"""The detour of transformed records through Spark: from the slot as rows of Apache Arrow, through the JVM, which evaluates
the expressions, to a second process of the same task, and as batches back to the slot."""
