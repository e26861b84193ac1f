"""Ordinary Kafka clients: facts in, actions out, librdkafka's errors translated in one place."""
