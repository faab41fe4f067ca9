"""The part of a huge schema that a question touches: what leaves the nodes it names, and what is called in its words.

The reader compares a question with every relation and type that it is given. Of a hundred thousand relations those are
the ones of the nodes that the question names, of their neighbours, and those that share words with it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice

from clew.answering.reading.mentions import Named
from clew.core.schema import Relation, Schema, words_of
from clew.core.types import NodeSet
from clew.store.graph.protocol import Explorable
from clew.store.index.tokens import terms

MOST_READ = 5_000
"""Relations or types: the reader compares a question with each of them, and must have read each of them once."""
MOST_RELATIONS, MOST_TYPES = 40, 40
"""Of a larger schema; each is read when a question touches it, which takes a few milliseconds."""
MOST_NEIGHBOURS = 200
"""Nodes next to those named whose relations are looked at."""


def is_huge(schema: Schema) -> bool:
    """Whether a question is read over a part of a schema only."""
    return max(len(schema.relations), len(schema.node_types)) > MOST_READ


@dataclass(frozen=True)
class TouchedSchemas:
    """Finds the part of one schema that each question touches."""

    kb: Explorable

    def of(self, question: str, named: Sequence[Named]) -> Schema:
        """Types and relations as the schema has them, in its order."""
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
        """Relations of the named nodes that share a word, then all of these, then others by words and of neighbours."""
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
    def _names(self) -> _Words:
        return _Words([f"{row.label} {row.inverse}" for row in self.kb.schema.relations])

    @cached_property
    def _types(self) -> _Words:
        return _Words([node_type.label for node_type in self.kb.schema.node_types])


class _Words:
    """Names that can be searched by the beginnings of their words, without an index."""

    def __init__(self, names: Sequence[str]) -> None:
        texts = [name.lower() for name in names]
        self.whole = "\n".join(texts)
        self.starts = list(accumulate((len(text) + 1 for text in texts), initial=0))[:-1]

    def saying(self, stems: Iterable[str], most: int) -> list[int]:
        """Places of the names that have most of the stems, at most so many; a stem of many names says nothing."""
        counts: Counter[int] = Counter()
        for stem in stems:
            found = {bisect_right(self.starts, hit.start()) - 1 for hit in re.finditer(re.escape(stem), self.whole)}
            if len(found) <= max(most, len(self.starts) // 10):
                counts.update(found)
        return [place for place, _ in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:most]]
