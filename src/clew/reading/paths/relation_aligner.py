"""From a question to relation paths without a model: phrases aligned with relations along paths that exist.

1  read the question outwards from its topic: chunks, links, what is asked for
2  explore: from the topic, hop by hop, keep the `beam` paths whose relations the words speak of
3  rank the paths that lead somewhere by features that know no schema, weighed by what was learned
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clew.core.types import NodeSet
from clew.kb.protocol import KnowledgeBase
from clew.models.protocol import Embedder
from clew.queries.relation_paths import Explorer, Hop, Lead, RelationPath, is_return
from clew.reading.paths.path_features import PathFeatures, Walked
from clew.reading.paths.path_scoring import as_vector, learned_weights, standard
from clew.reading.paths.question_reading import Knowledge, QuestionReading, read_question
from clew.reading.paths.relation_lexicon import Floats, RelationLexicon
from clew.reading.paths.topic_mask import MASK
from clew.reading.paths.word_alignment import BARE, LINKS, SQUARES, UNALIGNED, WEAKEST, Alignment, Doubles, State

INVERSE, FAN_OUT = 0.13, 0.35
"""What a hop against its relation's direction, and each decimal digit of fan-out, cost during exploration."""
RETURN, CUED_RETURN = 0.25, 0.075
"""What taking a relation back costs without a word for it, and where the question says “same” or “share”."""
NAMED = 0.1
"""What a hop costs that only the name of the type behind it speaks of."""
TOO_MANY = 20_000
"""A path that has reached more nodes than this is not followed further."""
FIRST_BEAM = 200
KEPT = 60


@dataclass(frozen=True, slots=True)
class RankedPath:
    """A path that exists, where it leads, what speaks for it and how much in all."""

    path: RelationPath
    ends: NodeSet
    features: tuple[float, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Partial:
    path: RelationPath
    nodes: NodeSet
    state: State
    prior: float
    fan_out: float
    surprise: float
    unlikeness: float


class RelationAligner:
    """Reads questions over one base."""

    def __init__(
        self, kb: KnowledgeBase, embedder: Embedder, weights: Mapping[str, float] | None = None, beam: int = 40
    ) -> None:
        """`weights` None means the ones that ship with Clew."""
        self.kb = kb
        self.explorer = Explorer(kb)
        self.lexicon = RelationLexicon(kb.schema, embedder)
        self.weights = as_vector(learned_weights() if weights is None else weights)
        self.beam = beam

    def read(self, masked: str) -> QuestionReading:
        """How a question with a masked topic is read."""
        lexicon = self.lexicon
        return read_question(masked, Knowledge(lexicon.type_named, lexicon.same_relation, lexicon.phrases))

    def rank(self, masked: str, topic: NodeSet, depth: int = 3) -> list[RankedPath]:
        """The paths from a topic, best first; each leads to at least one node."""
        reading = self.read(masked)  # 1
        likeness = self._likeness(masked, reading)
        strength = self.lexicon.match([span.text for span in reading.spans])
        walked = self._explore(Alignment(reading, strength), likeness[0], topic, depth)  # 2
        rows = PathFeatures(self.kb, self.lexicon, reading, likeness).all_of(walked)
        scores = standard(rows) @ self.weights
        ranked = [
            RankedPath(one.path, one.ends, tuple(row), score)
            for one, row, score in zip(walked, rows.tolist(), scores.tolist(), strict=True)
        ]
        return sorted(ranked, key=lambda one: (-one.score, len(one.path.hops), one.path.in_words()))  # 3

    def _likeness(self, masked: str, reading: QuestionReading) -> tuple[Floats, Floats]:
        plain = " ".join(masked.replace(MASK, " ").split())
        spoken = masked.replace(MASK, "it")
        vector = self.lexicon.vectors.of([spoken, plain or spoken, reading.content or spoken]).mean(axis=0)
        vector /= max(float(np.linalg.norm(vector)), 1e-12)
        return self.lexicon.sentences @ vector, self.lexicon.domains @ vector

    def _explore(self, alignment: Alignment, likeness: Floats, topic: NodeSet, depth: int) -> list[Walked]:
        level = [_Partial(RelationPath(topic), topic, alignment.start(), 0.0, 0.0, 0.0, 0.0)]
        scored: list[tuple[float, Walked]] = []
        for length in range(depth):
            grown = [step for partial in level for step in self._grow(alignment, likeness, partial)]
            grown.sort(key=lambda step: -step[0])
            level = []
            for score, partial, lead, found in grown[: self.beam if length else FIRST_BEAM]:
                ends = self._ends(partial, lead, topic)
                if not len(ends):
                    continue
                path = partial.path.then(lead.hop)
                codes = [self.lexicon.code[move.relation] for move in path.moves]
                walked = Walked(
                    path,
                    ends,
                    partial.nodes,
                    float(found[SQUARES]),
                    float(found[WEAKEST]),
                    float(found[LINKS]),
                    float(found[BARE]),
                    alignment.explained(codes),
                    partial.fan_out,
                    partial.surprise,
                    partial.unlikeness,
                )
                scored.append((score, walked))
                if len(level) < self.beam and not self.explorer.leads_to_values(lead.hop[-1], partial.nodes):
                    level.append(replace(partial, path=path, nodes=ends))
        scored.sort(key=lambda pair: -pair[0])
        return [walked for _, walked in scored[:KEPT]]

    def _grow(
        self, alignment: Alignment, likeness: Floats, partial: _Partial
    ) -> list[tuple[float, _Partial, Lead, Doubles]]:
        if len(partial.nodes) > TOO_MANY:
            return []
        hops = partial.path.hops
        before = hops[-1] if hops else None
        leads = [lead for lead in self.explorer.leads(partial.nodes) if not _to_and_fro(hops, lead.hop)]
        if not leads:
            return []
        codes = [[self.lexicon.code[move.relation] for move in lead.hop] for lead in leads]
        turn = CUED_RETURN if alignment.reading.cued else RETURN
        sought = alignment.reading.sought
        excused = np.array([self.lexicon.leads_to.get(lead.hop[-1]) in sought for lead in leads])
        free = np.array([turn if is_return(before, lead.hop) else UNALIGNED for lead in leads])
        free = np.where(excused, np.minimum(free, NAMED), free)
        chances = _log_shares(np.array([max(alignment.best[code] for code in hop) for hop in codes]))
        unlike = _log_shares(np.array([max(float(likeness[code]) for code in hop) for hop in codes]))
        grown = []
        for lead, chance, other, (score, found, state) in zip(
            leads, chances, unlike, alignment.extend(partial.state, codes, free, excused), strict=True
        ):
            fan_out = math.log10(max(lead.edges / len(partial.nodes), 1.0))
            inverse = sum(move.direction == "in" for move in lead.hop) / len(lead.hop)
            prior = partial.prior - INVERSE * inverse - FAN_OUT * fan_out
            onward = _Partial(
                partial.path,
                partial.nodes,
                state,
                prior,
                partial.fan_out + fan_out,
                partial.surprise + float(chance),
                partial.unlikeness + float(other),
            )
            grown.append((score + prior, onward, lead, found))
        return grown

    def _ends(self, partial: _Partial, lead: Lead, topic: NodeSet) -> NodeSet:
        hops = partial.path.hops
        return self.explorer.ends(partial.nodes, lead, hops[-1] if hops else None, topic)


def _to_and_fro(hops: Sequence[Hop], hop: Hop) -> bool:
    """There, back and there again says nothing that going there once does not."""
    return len(hops) >= 2 and is_return(hops[-2], hops[-1]) and is_return(hops[-1], hop)


def _log_shares(values: Doubles) -> Doubles:
    raised = values / 0.1
    return np.asarray(raised - np.logaddexp.reduce(raised))
