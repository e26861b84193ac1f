"""Connections to brokers: one event loop, the handshake, and occasional requests. Records are not copied here."""
