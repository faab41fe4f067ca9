"""DSPy retriever: `ClewRetriever(clew.open("medicine.kb"))("Which genes …?").passages`."""

from __future__ import annotations

from clew.answering.methods.catalog import DEFAULT_METHOD
from clew.api import Base
from clew.core.errors import needing
from clew.server.adapters import retrieve

with needing("dspy", "dspy"):
    import dspy


class ClewRetriever(dspy.Module):
    """Returns answers as passages. `found` has their metadata with evidence."""

    def __init__(self, base: Base, method: str = DEFAULT_METHOD, k: int = 5) -> None:
        super().__init__()
        self.base, self.method, self.k = base, method, k

    def forward(self, query: str) -> dspy.Prediction:
        """Return the k best answers to a question."""
        found = retrieve(self.base, query, self.method, self.k)
        return dspy.Prediction(passages=[one.text for one in found], found=[dict(one.metadata) for one in found])
