"""A schema in words: the texts of types, hops along relations, and attributes for an encoder.

Names of a schema come in every style: has_phenotype, doctoralAdvisor, film.film.directed_by, WORKS_AT, wdt:P84. They
are split into words. Descriptions are added if there are any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.core.nouns import singular
from clew.core.schema import Schema, words_of
from clew.store.graph.tables import ROW
from clew.store.index.tokens import stop_words, tokenise

LONGEST_DESCRIPTION = 16
"""Maximum number of words of a description to read."""


PLACE = "place in the list"
"""Words for the row of a node in its table."""
SHORTEST = 3
"""Minimum length of a content word, in letters."""


def described(label: str, description: str) -> str:
    """Return a name with the start of its description in brackets."""
    return f"{label} ({' '.join(description.split()[:LONGEST_DESCRIPTION])})" if description else label


@dataclass(frozen=True, slots=True)
class Hop:
    """A relation walked from one node type to another, along its edges ("out") or against them ("in")."""

    relation: str
    direction: Literal["out", "in"]
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class SchemaAttribute:
    """An attribute of the nodes of a type."""

    owner: str
    name: str
    kind: str
    is_written: bool = False
    """Whether its numbers or dates are in texts, such as `1,090 feet (332 m)`."""
    is_list: bool = False
    is_flag: bool = False
    """Whether its numbers are 0 and 1 for no and yes."""

    @property
    def is_row(self) -> bool:
        """Whether it is the row of a node in its table, which no schema lists."""
        return self.name == ROW

    @property
    def words(self) -> str:
        """The name in words."""
        return PLACE if self.is_row else words_of(self.name)


@dataclass(frozen=True)
class Vocabulary:
    """The parts of queries over a schema, each with its text for the encoder."""

    schema: Schema
    categories: frozenset[str] = frozenset()
    """Text attributes with few different values."""
    written: Mapping[str, str] = field(default_factory=dict)
    """Text attributes with mostly numbers or dates, and which of both."""
    flags: frozenset[str] = frozenset()
    """Integer attributes with the values 0 and 1 only."""
    ordered: str | None = None
    """The type of the rows of a table in an order."""

    @cached_property
    def hops(self) -> tuple[Hop, ...]:
        """Every relation in both directions, even between nodes of the same type."""
        return tuple(
            hop
            for row in self.schema.relations
            for hop in (Hop(row.name, "out", row.head, row.tail), Hop(row.name, "in", row.tail, row.head))
        )

    @cached_property
    def hop_texts(self) -> tuple[str, ...]:
        """Text of each hop: `gene → associated with → disease : description`."""
        texts = []
        for row in self.schema.relations:
            label = words_of(row.display or row.name)
            said = " ".join(row.description.split()[:LONGEST_DESCRIPTION])
            more = f" : {said}" if said else ""
            back = f" ( {words_of(row.inverse)} )" if row.inverse else ""
            head, tail = self.type_text(row.head), self.type_text(row.tail)
            texts.append(f"{head} → {label} → {tail}{more}")
            texts.append(f"{tail} ← {label}{back} ← {head}{more}")
        return tuple(texts)

    @cached_property
    def path_counts(self) -> NDArray[np.float64]:
        """Number of paths of one, two and three hops from each type, one row per type."""
        code = self.schema.type_code
        starts, ends = ([code[getattr(hop, side)] for hop in self.hops] for side in ("start", "end"))
        counts = np.zeros((4, len(code)))
        counts[0] = 1.0
        for length in range(1, 4):
            np.add.at(counts[length], starts, counts[length - 1][ends])
        return counts[1:].T

    @cached_property
    def attributes(self) -> tuple[SchemaAttribute, ...]:
        """Every attribute of every type."""
        stored = self.schema.attribute_types
        kinds = {
            **stored,
            **dict.fromkeys(self.categories, "category"),
            **self.written,
            **dict.fromkeys(self.flags, "boolean"),
            ROW: "integer",
        }
        return tuple(
            SchemaAttribute(
                node_type.name,
                name,
                kinds.get(name, "text"),
                is_written=name in self.written,
                is_list=stored.get(name) == "list",
                is_flag=name in self.flags,
            )
            for node_type in self.schema.node_types
            for name in (*node_type.attributes, *((ROW,) if node_type.name == self.ordered else ()))
        )

    @cached_property
    def attribute_texts(self) -> tuple[str, ...]:
        """Each attribute with its owner and kind: `gene : chromosome number (number)`."""
        return tuple(f"{self.type_text(one.owner)} : {one.words} ({one.kind})" for one in self.attributes)

    @cached_property
    def type_texts(self) -> tuple[str, ...]:
        """Text of each node type."""
        return tuple(map(self.type_text, self.schema.type_names))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Distinct words of all names, without stop words."""
        texts = [self.type_words(name) for name in self.schema.type_names]
        texts += [words_of(f"{row.display or row.name} {row.inverse}") for row in self.schema.relations]
        texts += [words_of(one.name) for one in self.attributes]
        found = dict.fromkeys(token.text for text in texts for token in tokenise(text))
        return tuple(one for one in found if one.isalpha() and len(one) >= SHORTEST and one not in stop_words())

    def type_text(self, name: str) -> str:
        """Return a node type with its description."""
        node_type = self.schema.node_type(name)
        return described(words_of(singular(node_type.display or name)), node_type.description)

    def type_words(self, name: str) -> str:
        """Return the words for a node type, as a placeholder for its nodes in a question."""
        return words_of(singular(self.schema.node_type(name).display or name))
