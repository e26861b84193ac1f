"""Repairs destination topics that differ from their sources, by the results of an audit, on an operator's request."""
