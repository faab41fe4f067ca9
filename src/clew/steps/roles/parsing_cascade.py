"""Two parsers, the cheap one first."""

from __future__ import annotations

from dataclasses import dataclass

from clew.kb.schema import Schema
from clew.steps.roles.protocol import Parse, TripletParser


@dataclass(frozen=True)
class LinkerFirst:
    """The schema linker reads; a model is asked only where the linker finds no triplet.

    A model of 1.5 billion parameters reads far worse than the linker, which costs nothing (docs/measurements.md); a
    model is needed for questions in words that the schema does not know.
    """

    linker: TripletParser
    model: TripletParser

    def parse(self, question: str, schema: Schema) -> Parse:
        """The linker's reading where it holds triplets, otherwise the model's."""
        parse = self.linker.parse(question, schema)
        return parse if parse.query.triplets else self.model.parse(question, schema)
