"""Administration through confluent-kafka: facts in, actions out, errors translated in one place."""
