"""How a folder of documents becomes a knowledge base."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from clew.documents.graph.build import EdgeOptions
from clew.documents.passages import PASSAGE_LENGTH


@dataclass(frozen=True, slots=True)
class DocumentOptions:
    """Length of passages, kinds of edges, limits, and where extracted texts are kept between builds."""

    passage_length: int = PASSAGE_LENGTH
    edges: EdgeOptions = field(default_factory=EdgeOptions)
    most_megabytes: int = 200
    """Larger files are reported and left out."""
    cache: Path | None = None
    """A folder for the texts of files already read; None reads every file anew."""
    entities: Path | None = None
    """A knowledge base whose nodes the passages may mention."""
