"""Kafka's wire format: record batches, fetch replies, produce requests. Bytes in, views out: no sockets, no threads, no
clock."""
