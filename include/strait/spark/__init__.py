"""The only code that imports pyspark: the data source and the application around it."""
