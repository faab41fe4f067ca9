"""What speaks for and against a relation path as the reading of a question, as numbers; none of them knows a schema."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clew.core.types import EMPTY, NodeRef, NodeSet
from clew.kb.protocol import KnowledgeBase
from clew.queries.relation_paths import Hop, RelationPath, are_values, returns
from clew.reading.language.relation_words import words
from clew.reading.paths.question_reading import QuestionReading
from clew.reading.paths.question_words import singular
from clew.reading.paths.relation_lexicon import KINDS, Floats, RelationLexicon

Doubles = NDArray[np.float64]

FEATURES = (
    "matched",  # squared strength of the aligned words, summed over the hops
    "weakest",  # strength of the weakest hop
    "unlinked",  # linked chunks that no hop explains, negative
    "explained",  # share of the question's words that some hop explains
    "bare",  # hops without a word
    "inverse",  # hops against the direction of their relation
    "fan_out",  # decimal digits of the fan-out of all hops
    "hops",
    "kind",  # whether the ends are what who, where, when and how ask for
    "focus",  # whether the ends are what “which languages” asks for
    "sentence",  # likeness of the whole question to the relations
    "domain",  # the same to the types that dotted names begin with
    "returns",  # hops that take the last relation back
    "returns_cued",  # the same where the question says “same”, “share”, “together”
    "types",  # share of the types the question names that lie on the path
    "in_names",  # share of the ends whose names hold the noun asked for
    "surprise",  # how probable each hop is among its alternatives by the words for it, logarithm
    "unlikeness",  # the same by the likeness of the whole question
    "answers",  # decimal digits of the number of ends
    "nameless",  # whether the last hop passes a node without a name
    "agreement",  # share of the other paths that lead to the same ends
    "itself",  # whether nothing but the topic lies at the end
    "overlong",  # hops beyond the chunks of words the question has
    "around_kind",  # like kind, told from the relations around the ends
    "around_focus",  # like focus, told from the relations around the ends
)
STRONGEST = 0.6
"""Strength of a hop above which more adds nothing."""
LOOKED_AT = 12
COMPARED = 300
"""So many ends of a path are compared with those of the others."""
EVEN = math.log(1 / len(KINDS))


@dataclass(frozen=True)
class Walked:
    """A path with where it leads and what the alignment found."""

    path: RelationPath
    ends: NodeSet
    before_ends: NodeSet
    matched: float
    weakest: float
    linked: float
    bare: float
    explained: float
    fan_out: float
    surprise: float
    unlikeness: float


class PathFeatures:
    """The features of paths for one question."""

    def __init__(
        self, kb: KnowledgeBase, lexicon: RelationLexicon, reading: QuestionReading, likeness: tuple[Floats, Floats]
    ) -> None:
        """`likeness` is that of the whole question to each relation's sentence and to its domain."""
        self.kb, self.lexicon, self.reading = kb, lexicon, reading
        self.sentence, self.domain = likeness
        self._known: dict[NodeSet, frozenset[str]] = {}
        self._refs: dict[int, NodeRef] = {}
        self.focus = self._focus()
        self.focus_type = next(filter(None, map(lexicon.type_named, reversed(reading.focus))), None)
        self.focus_words = {singular(word) for word in reading.focus}
        self._around = self._expected_around()

    def _focus(self) -> Floats | None:
        noun = self.reading.focus
        if not noun:
            return None
        return np.asarray(self.lexicon.match(list(dict.fromkeys((" ".join(noun), noun[-1], noun[0])))).max(axis=0))

    def _expected_around(self) -> tuple[Floats | None, Floats | None]:
        """For each relation how well the type its name begins with suits the kind, and the noun, asked for."""
        lexicon, reading = self.lexicon, self.reading
        if not lexicon.has_domain.any():
            return None, None
        kind = None if reading.kind is None else lexicon.domain_kinds[:, list(KINDS).index(reading.kind)]
        noun = None
        if reading.focus:
            nouns = lexicon.vectors.of([" ".join(reading.focus), reading.focus[-1]])
            noun = np.asarray((lexicon.domains @ nouns.T).max(axis=1) * lexicon.has_domain, dtype=np.float32)
        return kind, noun

    def all_of(self, walked: Sequence[Walked]) -> Doubles:
        """One row per path, one column per feature."""
        shown = [one.ends.array[:COMPARED] for one in walked]
        looked_at = [part for one in walked for part in (one.ends.array[:LOOKED_AT], one.before_ends.array[:1])]
        nodes = NodeSet.of(np.concatenate(looked_at)) if looked_at else EMPTY
        self._refs = {ref.id: ref for ref in self.kb.refs(nodes.array)}  # each once: paths meet at the same nodes
        agreements = _agreements(shown)
        return np.array([self._of(one, agreed) for one, agreed in zip(walked, agreements, strict=True)]).reshape(
            len(walked), len(FEATURES)
        )

    def _of(self, walked: Walked, agreement: float) -> list[float]:
        path = walked.path
        turned = returns(path)
        shown = [self._refs[node] for node in walked.ends.array[:LOOKED_AT].tolist()]
        kind = _most([ref.type for ref in shown[:9]])
        return [
            walked.matched,
            min(walked.weakest, STRONGEST),
            walked.linked - self.reading.linked,
            walked.explained,
            max(walked.bare - turned, 0.0),
            sum(_inverse(hop) for hop in path.hops),
            walked.fan_out,
            float(len(path.hops)),
            self._kind(path, shown, kind),
            self._asked_for(path, kind),
            self._mean(self.sentence, path),
            self._mean(self.domain, path),
            float(turned),
            float(turned) if self.reading.cued else 0.0,
            self._types(walked, kind),
            self._in_names(shown),
            walked.surprise,
            walked.unlikeness,
            math.log10(len(walked.ends)),
            float(len(path.hops[-1]) == 2),
            agreement,
            float(walked.ends == path.topic),
            float(max(len(path.hops) - max(self.reading.chunks, 1), 0)),
            *self._told_around(walked.ends),
        ]

    def _told_around(self, ends: NodeSet) -> tuple[float, float]:
        kind, noun = self._around
        if kind is None and noun is None:
            return 0.0, 0.0
        uses = self.kb.relations(NodeSet(ends.array[:LOOKED_AT]))
        codes = [self.lexicon.code[use.relation] for use in uses]
        told = 0.0 if kind is None or not codes else float(kind[codes].mean())
        return told, 0.0 if noun is None or not codes else float(noun[codes].max())

    def _mean(self, likeness: Floats, path: RelationPath) -> float:
        best = [max(likeness[self.lexicon.code[move.relation]] for move in hop) for hop in path.hops]
        return float(sum(best)) / len(best)

    def _kind(self, path: RelationPath, shown: Sequence[NodeRef], kind: str) -> float:
        wanted = self.reading.kind
        if wanted is None:
            return 0.0
        if are_values([ref.name for ref in shown]):
            return 0.5 if wanted in ("time", "number") else -0.5
        last, code = path.moves[-1], self.lexicon.code[path.moves[-1].relation]
        place = list(KINDS).index(wanted)
        if last.direction == "out":
            value = math.log(max(float(self.lexicon.kinds[code, place]), 0.05))
        elif kind in self.lexicon.type_kinds:
            value = math.log(max(float(self.lexicon.type_kinds[kind][place]), 0.05))
        else:
            known = self.lexicon.has_domain[code]
            value = math.log(max(float(self.lexicon.domain_kinds[code, place]), 0.05)) if known else EVEN
        return (value + 1.5) / 3 - (0.2 if wanted in ("time", "number") else 0.0)

    def _asked_for(self, path: RelationPath, kind: str) -> float:
        if self.focus is None:
            return 0.0
        if self.focus_type is not None:
            return 0.5 if kind == self.focus_type else -0.3
        last = path.hops[-1]
        value = float(self.focus[self.lexicon.code[last[-1].relation]])
        if last[-1].direction == "in":
            value = -0.2 if kind in self.lexicon.types else 0.3 * value
            domain = self.lexicon.domains[self.lexicon.code[last[-1].relation]]
            if self.lexicon.has_domain[self.lexicon.code[last[-1].relation]]:
                noun = self.lexicon.vectors.of([" ".join(self.reading.focus), self.reading.focus[-1]])
                value = max(value, float((noun @ domain).max()) - 0.2)
        if len(last) == 2:
            value = max(value, 0.7 * float(self.focus[self.lexicon.code[last[0].relation]]))
        return value

    def _types(self, walked: Walked, kind: str) -> float:
        named = self.reading.types
        if not named:
            return 1.0
        on_path = {kind} | self._topic_types(walked.path.topic)
        if len(walked.path.hops) > 1:
            on_path |= {self._refs[node].type for node in walked.before_ends.array[:1].tolist()}
        return sum(name in on_path for name in named) / len(named)

    def _topic_types(self, topic: NodeSet) -> frozenset[str]:
        if topic not in self._known:
            self._known[topic] = frozenset(ref.type for ref in self.kb.refs(topic.array[:3]))
        return self._known[topic]

    def _in_names(self, shown: Sequence[NodeRef]) -> float:
        if not self.focus_words or not shown:
            return 0.0
        return sum(any(singular(part) in self.focus_words for part in words(ref.name)) for ref in shown) / len(shown)


def _inverse(hop: Hop) -> float:
    return sum(move.direction == "in" for move in hop) / len(hop)


def _most(names: Sequence[str]) -> str:
    return Counter(names).most_common(1)[0][0] if names else ""


def _agreements(ends: Sequence[NDArray[np.int32]]) -> list[float]:
    """For each path the share of the other paths that a node at its end is at the end of, on average."""
    if not ends:
        return []
    sizes = np.array([len(one) for one in ends])
    joined = np.concatenate(ends)
    totals = np.add.reduceat(np.bincount(joined)[joined], np.cumsum(sizes) - sizes)  # no path is without an end
    shares: list[float] = ((totals / sizes - 1) / max(len(ends) - 1, 1)).tolist()
    return shares
