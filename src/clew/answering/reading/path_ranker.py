"""Rank relation paths without a language model, by the trained encoders' scores for a path and a question.

1  compare the question, with its topic masked, to every relation at the nodes reached so far
2  explore: for each length, hop by hop, keep the `beam` likeliest paths that reach a node
3  choose: the second encoder reads the question together with the best paths in words
4  remember: prefer the paths that led to confirmed answers of similar questions, stored next to a knowledge base
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from clew.answering.queries.relation_paths import Explorer, Lead, Move, RelationPath
from clew.answering.reading.encoders import LEAST_PRIOR, SHIPPED, Encoders, Floats, unit
from clew.answering.reading.fitted import Fitted, change_fit, keep_paths, paths_with_fit
from clew.answering.reading.mentions import MASK
from clew.answering.reading.other_languages import encoders_for
from clew.answering.reading.plan import LETTERS, Branch, Plan, Wording
from clew.answering.reading.reader import BUDGET, CHOSEN_AMONG, shared_encoders
from clew.answering.reading.scoring import FOCUS, HEADS, length_scores, shared_words
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.errors import CorruptError
from clew.core.scores import cosines, round_network
from clew.core.texts import parse_json
from clew.core.types import NodeSet
from clew.store.graph.manifest import LEARNED, unsealed_or_older
from clew.store.graph.protocol import KnowledgeBase

HEADS_OF_LENGTH = {1: HEADS[:1], 2: HEADS[1:3], 3: HEADS[3:6]}
"""Heads that compare each move of a path, by the number of moves. A path through an unnamed node has an extra move."""
TOO_MANY = 20_000
"""Maximum number of nodes at which a path is followed further."""
UNREAD = -5.0
"""Score change for a path that the second encoder did not read."""
ALIKE, THE_SAME = 0.8, 0.97
"""Cosines between two questions from which on a confirmed path starts to count, and counts fully."""
MOST_TRUSTED = 0.9
"""Maximum weight of confirmed paths against the encoders, for questions that differ only in their names."""
NEAREST = 20.0
"""Scale of the softmax over confirmed questions. Higher values favour the most similar question."""

Places = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RankedPath:
    """An existing path, its end nodes, and the log-probability that the question asks for it."""

    path: RelationPath
    ends: NodeSet
    score: float


@dataclass(frozen=True)
class Taught:
    """A question with masked topic and a confirmed answer, and the moves that lead to the answer."""

    question: str
    moves: tuple[Move, ...]


@dataclass(frozen=True)
class _FoundPath:
    path: RelationPath
    places: Places
    """Vocabulary indexes of the path's moves."""
    ends: NodeSet
    prior: float


class PathRanker:
    """Ranks the paths of one base."""

    def __init__(
        self, kb: KnowledgeBase, *, taught: Sequence[Taught] = (), weights: Path = SHIPPED, beam: int = 40
    ) -> None:
        self.kb, self.taught, self.beam = kb, tuple(taught), beam
        self.explorer = Explorer(kb)
        self.encoders = shared_encoders(weights)
        self._vectors: dict[int, Floats] = {}

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The relations in words."""
        return Vocabulary(self.kb.schema)

    @cached_property
    def fitted(self) -> Fitted | None:
        """The reader fit of this base."""
        return Fitted.beside(self.kb, self.encoders.version)

    def masked(self, question: str, topic: NodeSet) -> str:
        """Return a question with its topic `[]` replaced as the encoders expect: `who directed § film §`."""
        return self._with(question, f"{FOCUS} {self._kind_words(topic)} {FOCUS}")

    def rank(self, question: str, topic: NodeSet, depth: int = 3) -> list[RankedPath]:
        """Return the paths from a topic that reach at least one node, best first. `question` has `[]` for the topic."""
        if not len(topic):
            return []
        masked = self.masked(question, topic)
        encoders = encoders_for(question, [], self.encoders, self.vocabulary.words)
        vector = unit(encoders.asked([masked]))[0]
        found = self._explored(vector, topic, depth)  # 1, 2
        if not found:
            return []
        found.sort(key=lambda one: (-one.prior, one.path.in_words()))
        scores = self._remembered(vector, found, self._chosen(question, masked, topic, found, encoders))  # 3, 4
        ranked = [RankedPath(one.path, one.ends, float(score)) for one, score in zip(found, scores, strict=True)]
        return sorted(ranked, key=lambda one: -one.score)

    # 1 and 2

    def _explored(self, vector: Floats, topic: NodeSet, depth: int) -> list[_FoundPath]:
        kind = self._kind(topic)
        lengths = length_scores(self.vocabulary, self.encoders.heads, self.kb.schema.type_code[kind])
        reached: dict[RelationPath, NodeSet] = {RelationPath(topic): topic}
        leads: dict[RelationPath, list[Lead]] = {}
        found = []
        for length in range(1, min(depth, len(HEADS_OF_LENGTH)) + 1):
            likely = self._likely(vector, length)
            level: list[tuple[float, RelationPath, Places]] = [(0.0, RelationPath(topic), ())]
            while level:
                grown = []
                for score, path, places in level:
                    if len(reached[path]) <= TOO_MANY:
                        leads.setdefault(path, self.explorer.leads(reached[path]))
                        for lead in leads[path]:
                            if len(places) + len(lead.hop) <= length:
                                more, after = likely(lead, places, kind)
                                grown.append((score + more, path, after, lead))
                level = []
                for score, path, places, lead in self._best(grown, reached):
                    longer = path.then(lead.hop)
                    if len(places) == length:
                        prior = score + float(lengths[length - 1])
                        found.append(_FoundPath(longer, places, reached[longer], prior))
                    elif not self.explorer.leads_to_values(lead.hop[-1], reached[path]):
                        level.append((score, longer, places))
        return found

    def _best(
        self, grown: list[tuple[float, RelationPath, Places, Lead]], reached: dict[RelationPath, NodeSet]
    ) -> list[tuple[float, RelationPath, Places, Lead]]:
        """Return the `beam` likeliest paths that reach a node. Add their end nodes to `reached`."""
        kept = []
        for one in sorted(grown, key=lambda one: -one[0]):
            _, path, _, lead = one
            longer = path.then(lead.hop)
            if longer not in reached:
                reached[longer] = self.explorer.ends(reached[path], lead, path)
            if len(reached[longer]):
                kept.append(one)
                if len(kept) == self.beam:
                    break
        return kept

    def _likely(self, vector: Floats, length: int) -> Callable[[Lead, Places, str], tuple[float, Places]]:
        """Return a function that scores the moves of a hop after a path.

        For a relation between several pairs of types it uses the likeliest pair.
        """
        matrices = self.encoders.heads["pairs"]
        turned = [vector @ matrices[HEADS.index(head)] for head in HEADS_OF_LENGTH[length]]

        @cache
        def of_place(position: int, place: int) -> float:
            return float(round_network(self._vector(place) @ turned[position]))

        def likely(lead: Lead, places: Places, kind: str) -> tuple[float, Places]:
            total, hops = 0.0, self.vocabulary.hops
            for move in lead.hop:
                start = hops[places[-1]].end if places else kind
                every = self._places[move]
                own = [place for place in every if hops[place].start == start] or every
                if not own:  # a SPARQL endpoint may have relations that its schema does not list
                    return LEAST_PRIOR, (*places, *[0] * len(lead.hop))
                best = max(own, key=lambda place: of_place(len(places), place))
                total += of_place(len(places), best)
                places = (*places, best)
            return total, places

        return likely

    @cached_property
    def _places(self) -> defaultdict[Move, list[int]]:
        places: defaultdict[Move, list[int]] = defaultdict(list)
        for place, hop in enumerate(self.vocabulary.hops):
            places[Move(hop.relation, hop.direction)].append(place)
        return places

    def _vector(self, place: int) -> Floats:
        if place not in self._vectors:
            text = self.vocabulary.hop_texts[place]
            vector = unit(self.encoders.meaning([text]))[0]
            self._vectors[place] = vector if self.fitted is None else vector + self.fitted.of([text])[0]
        return self._vectors[place]

    # 3

    def _chosen(
        self, question: str, masked: str, topic: NodeSet, found: Sequence[_FoundPath], encoders: Encoders
    ) -> Floats:
        """Return log-probabilities. Paths that the second encoder did not read score lower than paths that it did."""
        priors = np.array([one.prior for one in found])
        priors -= np.logaddexp.reduce(priors)
        few, wording = found[:CHOSEN_AMONG], Wording(self.vocabulary)
        asked = self._with(question, f"{LETTERS[0]} ( {self._kind_words(topic)} )")
        texts = [wording.of(Plan("list", branches=(Branch(0, one.places),))) for one in few]
        shared = [shared_words(masked, text) for text in texts]
        told = encoders.choose([asked] * len(few), texts, priors[: len(few)].tolist(), shared, BUDGET)[1:]
        return np.concatenate((told, priors[len(told) :] + min(UNREAD, float(told.min()))), dtype=np.float32)

    # 4

    def _remembered(self, vector: Floats, found: Sequence[_FoundPath], scores: Floats) -> Floats:
        """Mix the scores with the paths of confirmed questions. More similar questions get a higher weight."""
        if not self.taught:
            return scores
        alike = cosines(self._taught_vectors, vector)
        trust = MOST_TRUSTED * float(np.clip((alike.max() - ALIKE) / (THE_SAME - ALIKE), 0, 1))
        if not trust:
            return scores
        shares = np.exp(NEAREST * (alike - alike.max()))
        votes: dict[tuple[Move, ...], float] = defaultdict(float)
        for one, share in zip(self.taught, shares / shares.sum(), strict=True):
            votes[one.moves] += float(share)
        meant = np.array([votes.get(one.path.moves, 0.0) for one in found])
        own = np.exp(scores - np.logaddexp.reduce(scores))
        return np.asarray(np.log((1 - trust) * own + trust * meant + 1e-30), dtype=np.float32)

    @cached_property
    def _taught_vectors(self) -> Floats:
        return unit(self.encoders.meaning([one.question for one in self.taught]))

    def _with(self, question: str, instead: str) -> str:
        asked = question.replace(MASK, f" {instead} ") if MASK in question else f"{question} {instead}"
        return " ".join(asked.split())

    def _kind(self, topic: NodeSet) -> str:
        return self.kb.refs([int(topic.array[0])])[0].type

    def _kind_words(self, topic: NodeSet) -> str:
        return self.vocabulary.type_words(self._kind(topic))


def keep_taught(folder: Path, taught: Sequence[Taught], fitted: Fitted | None = None) -> None:
    """Store the paths learned from confirmed answers of this base, and `fitted` in the same step."""
    paths = [
        {"question": one.question, "moves": [[move.relation, move.direction] for move in one.moves]} for one in taught
    ]
    if fitted is None and paths_with_fit(folder) is None:
        keep_paths(folder, paths)
        return
    change_fit(folder, {**(fitted.to_json() if fitted else {}), "paths": paths})
    (folder / LEARNED).unlink(missing_ok=True)  # the paths stored with the fit replace this file


def read_taught(folder: Path) -> tuple[Taught, ...]:
    """Return the paths learned for this base. Empty if it has no paths."""
    file, lines = folder / LEARNED, paths_with_fit(folder)
    if lines is None and not file.exists():
        return ()
    try:
        if lines is None:
            lines = parse_json(unsealed_or_older(file.read_bytes()) or b"")
        return tuple(Taught(str(line["question"]), tuple(_move(*move) for move in line["moves"])) for line in lines)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise CorruptError(
            f"{file} does not contain learned paths: remove it, or learn again with `clew feedback --learn`"
        ) from error


def _move(relation: str, direction: str) -> Move:
    if direction not in ("out", "in"):
        raise ValueError(direction)
    return Move(str(relation), "out" if direction == "out" else "in")


def rightness(ends: Sequence[str], answers: Sequence[str]) -> float:
    """Return the F1 of the keys at the end of a path against the confirmed keys."""
    shared = len(set(ends) & set(answers))
    return 2 * shared / (len(set(ends)) + len(set(answers))) if shared else 0.0
