"""Avro's binary values: schemas, decoding to JSON, and replacing single fields. Pure, and bounded for hostile values."""
