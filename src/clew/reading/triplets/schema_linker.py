"""The schema linker: reads a question as a triplet query without a language model.

1. Mentions: which nodes the question names (names index, longest match).
2. Words: which phrases speak for relations and types of the schema, by their letters and by meaning.
3. Paths: how each named node may be connected with what is asked for, aligned with the words around it.
4. Assembly: the best combination of paths as one connected query; negations, counts and conditions attached.
5. Execution: the best reading that has an answer wins; the others are its alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from clew.core.query import Constant, TripletQuery
from clew.core.roles import Parse
from clew.core.schema import Schema
from clew.index.protocol import Mention, Names
from clew.kb.protocol import KnowledgeBase
from clew.models.protocol import Embedder
from clew.queries.grounding import Grounding, pose
from clew.queries.hierarchies import descendants, hierarchies
from clew.queries.solutions import solve
from clew.reading.language.phrases import PhraseMatcher, PhraseVectors
from clew.reading.language.relation_words import SAYS_LESS, Variant, relation_variants, type_variants
from clew.reading.triplets.alignment import Aligner, Matches, Weights
from clew.reading.triplets.assembly import Branch, negated_hop
from clew.reading.triplets.combination import combine
from clew.reading.triplets.finishing import finish
from clew.reading.triplets.mentions import MARKED, Named, find_mentions, has_schema_word, named
from clew.reading.triplets.reading import Reading, read
from clew.reading.triplets.schema_paths import SchemaGraph, is_generic

NAMES_TYPE = 0.8
"""From this score on a phrase names a type."""
MISREAD = 0.5
"""Part of the cost of leaving a mention out where its words may be about a relation."""
CERTAIN = 0.85
"""From this score on a word after the question word names the type that is asked for, and no other is considered."""
LIKELY, AHEAD = 0.6, 0.3
"""So does one with this score that is so much ahead of any other type."""


@dataclass(frozen=True)
class SchemaLinker:
    """Parses questions over one knowledge base; without an embedder only letters count."""

    kb: KnowledgeBase
    names: Names
    embedder: Embedder | None = None
    longest: int = 2
    """Triplets between a constant and the target, at most."""
    beam: int = 12
    tries: int = 12
    """So many readings are executed to find one that has an answer."""
    weights: Weights = field(default_factory=Weights)

    def parse(self, question: str, schema: Schema) -> Parse:
        """The best reading that has an answer, and other readings in descending order of score."""
        del schema  # the linker looks at the nodes too, so it is bound to its own base
        text, mentions = find_mentions(question, self.names, (self._types, self._relations))
        queries, names = self._readings(text, mentions, MARKED.search(question) is not None)
        plain = [mention for mention in mentions if not has_schema_word(mention, self._relations)]
        if len(plain) < len(mentions):  # "mode of inheritance" may name a node, or say which relation is meant
            lost = MISREAD * sum(
                name.weight for name, mention in zip(names, mentions, strict=True) if mention not in plain
            )
            others = self._readings(text, plain, marked=False)[0]
            queries += [replace(query, score=query.score - lost) for query in others]
        queries = list(dict.fromkeys(sorted(queries, key=lambda query: -query.score)))[: self.tries]
        chosen = next((place for place, query in enumerate(queries) if self._has_answer(query, names)), 0)
        return Parse(queries[chosen], tuple(queries[:chosen] + queries[chosen + 1 :]))

    def _readings(
        self, text: str, mentions: Sequence[Mention], marked: bool
    ) -> tuple[list[TripletQuery], Sequence[Named]]:
        """Queries for one choice of mentions."""
        reading = read(text, mentions)
        names = [
            replace(name, is_written_as_name=name.is_written_as_name or has_schema_word(mention, self._relations))
            for name, mention in zip(named(self.kb, reading.mentions, mentions, marked), mentions, strict=True)
        ]
        matches = self._matches(reading)
        aligner = Aligner(reading, matches, self.weights)
        ends = self._asked_types(reading, matches)
        branches = [list(self._branches(aligner, reading, name, ends)) for name in names]
        combined = combine(reading, matches, names, branches, ends, self.weights)
        return [finish(self.kb.schema, reading, matches, one) for one in combined], names

    @cached_property
    def _graph(self) -> SchemaGraph:
        return SchemaGraph(self.kb.schema)

    @cached_property
    def _vectors(self) -> PhraseVectors | None:
        return None if self.embedder is None else PhraseVectors(self.embedder)

    @cached_property
    def _types(self) -> PhraseMatcher:
        return PhraseMatcher(
            [() if is_generic(kind.name) else type_variants(kind) for kind in self.kb.schema.node_types], self._vectors
        )

    @cached_property
    def _relations(self) -> PhraseMatcher:
        variants: dict[str, dict[Variant, None]] = {}
        for row in self.kb.schema.relations:
            variants.setdefault(row.name, {}).update(dict.fromkeys(relation_variants(row)))
        return PhraseMatcher([tuple(variants[name]) for name in self.kb.schema.relation_names], self._vectors)

    def _matches(self, reading: Reading) -> Matches:
        texts = [phrase.text for phrase in reading.phrases]
        relations, types = self._relations.scores(texts), self._types.scores(texts)
        naming = types.max(axis=1, initial=0.0) >= NAMES_TYPE  # these speak for a relation only if they name it as well
        by_letters = self._relations.by_letters([text for text, does in zip(texts, naming, strict=True) if does])
        relations[naming] = np.where(by_letters > SAYS_LESS, by_letters, 0.0)
        return Matches(relations, types, self.kb.schema.relation_code, self.kb.schema.type_code)

    def _asked_types(self, reading: Reading, matches: Matches) -> frozenset[str]:
        """The type that is asked for, where a word after the question word names it; else every answer type."""
        rows = [row for row, phrase in enumerate(reading.phrases) if reading.is_head(phrase)]
        scores = matches.types[rows].max(axis=0, initial=0.0) if rows else matches.types[:0].max(axis=0, initial=0.0)
        first, second = np.sort(np.append(scores, [0.0, 0.0]))[:-3:-1]
        is_certain = first >= CERTAIN or (first >= LIKELY and first - second >= AHEAD)
        certain = {kind for kind, code in matches.type_code.items() if is_certain and scores[code] == first}
        return frozenset(certain & set(self.kb.schema.answer_types)) or frozenset(self.kb.schema.answer_types)

    def _branches(self, aligner: Aligner, reading: Reading, name: Named, ends: frozenset[str]) -> Iterator[Branch]:
        """The best ways to connect a mention with one of the end types."""
        for kind, nodes in name.nodes.items():
            for relation in hierarchies(self.kb.schema, kind):  # what holds below a node holds for it
                nodes = descendants(self.kb, nodes, relation)
            uses = self.kb.relations(nodes)
            for path in self._graph.paths(kind, uses, ends, aligner.judge, self.longest, self.beam):
                alignment = aligner.align(path, name.span)
                yield Branch(Constant(name.text, kind), alignment, negated_hop(reading, name.span, alignment))

    def _has_answer(self, query: TripletQuery, names: Sequence[Named]) -> bool:
        nodes = {(name.text, kind): nodes for name in names for kind, nodes in name.nodes.items()}
        links = {name.text: name.links for name in names}
        groundings = {
            constant: Grounding(
                constant,
                tuple(link for link in links[constant.text] if link.node in nodes[constant.text, constant.type or ""]),
            )
            for constant in query.constants()
        }
        problem = pose(query, groundings, self.kb, edge_types="strict", direction="strict", hierarchical=True)
        return not solve(self.kb, problem).is_empty
