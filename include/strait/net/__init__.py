"""Connections to brokers: one event loop, the handshake, and the requests that are asked now and then. No records are
copied here."""
