"""A small trained network that reads passages beside a question."""

from clew.models.passages.network import PassageNetwork, Seen

__all__ = ["PassageNetwork", "Seen"]
