"""Clusters with TLS and SASL, certificates and tokens."""
