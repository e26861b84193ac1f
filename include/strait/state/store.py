"""Everything that reads or writes the state topics, under one name."""

from strait.state.publisher import ControlPublisher, Publication
from strait.state.reader import StateReader
from strait.state.topics import ensure_state_topics
from strait.state.view import Kind, StateView
from strait.state.writer import StateWriter

__all__ = [
    "ControlPublisher",
    "Kind",
    "Publication",
    "StateReader",
    "StateView",
    "StateWriter",
    "ensure_state_topics",
]
