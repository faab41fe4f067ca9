"""A schema in words: the texts of types, hops along relations, and attributes for an encoder.

Names of a schema come in every style: has_phenotype, doctoralAdvisor, film.film.directed_by, WORKS_AT, wdt:P84. They
are split into words. Descriptions are added if there are any.

The reader compares a question with every relation and type it gets. From a hundred thousand relations, select the
relations of the nodes in the question and of their neighbours, and relations that share words with it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clew.answering.reading.mentions import NamedSpan
from clew.core.nouns import singular
from clew.core.schema import Relation, Schema, words_of
from clew.core.types import NodeSet
from clew.store.graph.protocol import Explorable
from clew.store.graph.tables import ROW
from clew.store.index.tokens import stop_words, terms, tokenise
from clew.store.sources.columns import KEY_ENDINGS, plain

LONGEST_DESCRIPTION = 16
"""Maximum number of words of a description to read."""


PLACE = "place in the list"
"""Words for the row of a node in its table."""
SHORTEST = 3
"""Minimum length of a content word, in letters."""


def described(label: str, description: str) -> str:
    """Return a name with the start of its description in brackets."""
    return f"{label} ({' '.join(description.split()[:LONGEST_DESCRIPTION])})" if description else label


def is_key(attribute: str) -> bool:
    """Return whether an attribute is called like a key. Digits of a key are no number."""
    return plain(attribute).endswith(KEY_ENDINGS)


def is_surely_key(attribute: str) -> bool:
    """Return whether an attribute is called as only keys are, and not like a number or a code that people use."""
    return is_key(attribute) and not plain(attribute).endswith(("_no", "_code"))


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

    def attributes_called(self, text: str) -> frozenset[int]:
        """Return the attributes of which the last word is in a text."""
        said = set(terms(text))
        return frozenset(place for place, word in enumerate(self._last_words) if word in said)

    @cached_property
    def _last_words(self) -> list[str]:
        return [([word for word in terms(one.words) if word.isalpha()] or [""])[-1] for one in self.attributes]

    def type_words(self, name: str) -> str:
        """Return the words for a node type, as a placeholder for its nodes in a question."""
        return words_of(singular(self.schema.node_type(name).display or name))


MOST_READ = 5_000
"""Maximum number of relations or types to read as a whole. The reader encodes each of them once."""
MOST_RELATIONS, MOST_TYPES = 40, 40
"""Maximum number of relations and types selected from a larger schema. Encoding each takes some milliseconds."""
MOST_NEIGHBOURS = 200
"""Maximum number of neighbours of the named nodes whose relations are considered."""


def is_huge(schema: Schema) -> bool:
    """Return whether the reader uses only a part of the schema for each question."""
    return max(len(schema.relations), len(schema.node_types)) > MOST_READ


@dataclass(frozen=True)
class TouchedSchemas:
    """Selects the part of one schema that is relevant to each question."""

    kb: Explorable

    def of(self, question: str, named: Sequence[NamedSpan]) -> Schema:
        """Return a schema with the relevant types, in the order of the full schema, and the relevant relations."""
        schema = self.kb.schema
        nodes = [sense.nodes for one in named for sense in one.senses[:1]]
        said = set(terms(question))
        relations = list(islice(dict.fromkeys(self._near(nodes, said)), MOST_RELATIONS))
        kinds = [sense.type for one in named for sense in one.senses]
        kinds += [end for relation in relations for end in (relation.head, relation.tail)]
        kinds += [schema.node_types[place].name for place in self._types.saying(said, MOST_TYPES)]
        kept = {schema.type_code[kind] for kind in kinds}
        types = tuple(schema.node_types[code] for code in sorted(kept))
        attributes = {name for one in types for name in one.attributes}
        told = {name: kind for name, kind in schema.attribute_types.items() if name in attributes}
        return Schema(types, tuple(relations), told, schema.edge_attributes)

    def _near(self, named: Sequence[NodeSet], said: set[str]) -> Iterable[Relation]:
        """Yield relations in order of relevance, with repetitions.

        First relations of the named nodes that share a word with the question, then more of their relations, then other
        relations by words and relations of neighbours.
        """
        own = [row for nodes in named for row in self._leaving(nodes)]
        yield from (row for row in own if said & set(terms(words_of(row.label))))
        yield from own[: MOST_RELATIONS // 2]
        yield from (self.kb.schema.relations[place] for place in self._names.saying(said, MOST_RELATIONS // 2))
        for nodes in named:
            around = self.kb.neighbors(nodes)
            yield from self._leaving(NodeSet.of(around.array[:MOST_NEIGHBOURS]))
        yield from own

    def _leaving(self, nodes: NodeSet) -> list[Relation]:
        names = dict.fromkeys(use.relation for use in self.kb.relations(nodes))
        return [row for name in names for row in self.kb.schema.relation_rows(name)]

    @cached_property
    def _names(self) -> _UnindexedNames:
        return _UnindexedNames([f"{row.label} {row.inverse}" for row in self.kb.schema.relations])

    @cached_property
    def _types(self) -> _UnindexedNames:
        return _UnindexedNames([node_type.label for node_type in self.kb.schema.node_types])


class _UnindexedNames:
    """Names that can be searched by parts of words, without an index."""

    def __init__(self, names: Sequence[str]) -> None:
        texts = [name.lower() for name in names]
        self.whole = "\n".join(texts)
        self.starts = list(accumulate((len(text) + 1 for text in texts), initial=0))[:-1]

    def saying(self, stems: Iterable[str], most: int) -> list[int]:
        """Return the indexes of up to `most` names that contain the most stems. Ignore stems of many names."""
        counts: Counter[int] = Counter()
        for stem in stems:
            found = {bisect_right(self.starts, hit.start()) - 1 for hit in re.finditer(re.escape(stem), self.whole)}
            if len(found) <= max(most, len(self.starts) // 10):
                counts.update(found)
        return [place for place, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most]]
