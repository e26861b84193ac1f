"""Tokens for SASL OAUTHBEARER that Strait gets itself, for its own client and for librdkafka."""
