"""Select the part of a huge schema that is relevant to a question.

The reader compares a question with every relation and type it gets. From a hundred thousand relations, select the
relations of the nodes in the question and of their neighbours, and relations that share words with it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice

from clew.answering.reading.mentions import NamedSpan
from clew.core.schema import Relation, Schema, words_of
from clew.core.types import NodeSet
from clew.store.graph.protocol import Explorable
from clew.store.index.tokens import terms

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
