"""Copies without sockets: the protocol as a model, histories, and single parts with nothing remarkable in them."""
