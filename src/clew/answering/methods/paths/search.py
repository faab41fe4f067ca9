"""Search over relation paths of Tournament on Path: filter candidates, then decide by a tournament.

`prefilter` selects the candidates for the judge. Tournaments select the best of many by comparing only a few at a time
(section 3.3 of the thesis). `chunked` and `pairwise` take the judge as a callable over a batch of independent matches.
A model can thus judge a whole round at once, and tests need no model. A judge may be inconsistent: a > b > c > a is
allowed. The judge is a model, or similarity to the question. `grow` searches hop by hop, as System 2 does. It ranks the
selected paths again with their end entities, and asks the model whether the best path answers the question.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal, TypeVar

from clew.answering.methods.paths.asking import PathPair, first_is_better, pick_chains, rate_paths
from clew.answering.queries.relation_paths import Explorer, RelationPath
from clew.answering.roles.choose import ModelChooser
from clew.core.errors import InputError
from clew.core.roles import Choice, Claim, Scorer
from clew.core.schema import words_of
from clew.core.trace import span
from clew.core.types import NodeSet, Ranking
from clew.models.protocol import Embedder, LanguageModel
from clew.store.index.fusion import reciprocal_rank_fusion
from clew.store.index.lexical import K1, B, idf
from clew.store.index.tokens import stem

MOST_EMBEDDED = 300
"""Maximum number of candidates to embed, selected by shared words with the question. A hub has thousands."""
Filter = Literal["aligned", "lexical", "semantic", "rrf", "random", "none"]


def path_text(path: RelationPath) -> str:
    """Return the words of a path's relations in order, as a text to embed or search."""
    return " ".join(words_of(move.relation) for move in path.moves)


def prefilter(
    question: str, texts: Sequence[str], kept: int, how: Filter, embedder: Embedder, seed: int = 0
) -> list[int]:
    """Return the indices of the `kept` texts most similar to the question, best first.

    Each text is embedded as a whole. "aligned" and "none" leave the order unchanged, and "none" returns all.
    """
    if how in ("semantic", "rrf") and len(texts) > MOST_EMBEDDED:
        first = sorted(best_places(lexical(question, texts), MOST_EMBEDDED))
        kept_of = prefilter(question, [texts[place] for place in first], kept, how, embedder, seed)
        return [first[place] for place in kept_of]
    places = range(len(texts))
    if how == "random":
        return random.Random(seed).sample(places, min(kept, len(texts)))
    if how in ("aligned", "none") or not texts:
        return list(places[: kept if how == "aligned" else None])
    rankings = []
    if how in ("lexical", "rrf"):
        rankings.append(Ranking.of(places, lexical(question, texts)))
    if how in ("semantic", "rrf"):
        cosines = embedder.embed(texts, role="query") @ embedder.embed([question], role="query")[0]
        rankings.append(Ranking.of(places, cosines.tolist()))
    return [place for place, _ in reciprocal_rank_fusion(rankings, k=kept)]


def lexical(question: str, documents: Sequence[str]) -> list[float]:
    """Return the BM25 scores of a question over a list of short texts."""
    bags = [Counter(stem(word) for word in document.split()) for document in documents]
    terms = [stem(word) for word in re.findall(r"\w+", question.lower())]
    usual = max(sum(map(len, bags)) / max(len(bags), 1), 1e-9)
    seen = Counter(term for bag in bags for term in bag)
    scores = []
    for bag in bags:
        weight = K1 * (1 - B + B * bag.total() / usual)
        known = [term for term in terms if bag[term]]
        parts = [idf(len(bags), seen[term]) * bag[term] * (K1 + 1) / (bag[term] + weight) for term in known]
        scores.append(float(sum(parts)))
    return scores


T = TypeVar("T")

KeepBest = Callable[[Sequence[Sequence[T]], Sequence[int]], Sequence[Sequence[int]]]
"""Chunks and the number to select of each → for every chunk the selected indices, best first."""
FirstIsBetter = Callable[[Sequence[tuple[T, T]]], Sequence[bool]]
"""Pairs → for every pair whether its first item is better."""


def chunked(candidates: Sequence[T], keep_best: KeepBest[T], k: int = 3, size: int = 4) -> list[T]:
    """Return the k best, best first. The better half of each chunk of `size` advances until one chunk is left.

    The thesis leaves two cases open. An odd chunk advances its larger half. If a round would leave fewer than k, it is
    skipped and all remaining candidates enter the final.
    """
    left = list(candidates)
    while len(left) > size:
        chunks = [left[start : start + size] for start in range(0, len(left), size)]
        wanted = [(len(chunk) + 1) // 2 for chunk in chunks]
        if sum(wanted) < k:
            break
        playing = [number for number, chunk in enumerate(chunks) if len(chunk) > wanted[number]]
        verdicts = keep_best([chunks[number] for number in playing], [wanted[number] for number in playing])
        kept = [list(range(len(chunk))) for chunk in chunks]
        for number, verdict in zip(playing, verdicts, strict=True):
            kept[number] = _valid(verdict, wanted[number], len(chunks[number]))
        left = [chunk[place] for chunk, places in zip(chunks, kept, strict=True) for place in places]
    if len(left) < 2:
        return left
    wanted_last = min(k, len(left))
    [verdict] = keep_best([left], [wanted_last])
    return [left[place] for place in _valid(verdict, wanted_last, len(left))]


def _valid(verdict: Sequence[int], wanted: int, size: int) -> list[int]:
    """Return the first `wanted` distinct valid indices. If there are too few, fill up in the earlier order."""
    named = [place for place in dict.fromkeys(verdict) if 0 <= place < size]
    return [*named, *(place for place in range(size) if place not in set(named))][:wanted]


def pairwise(candidates: Sequence[T], first_is_better: FirstIsBetter[T], k: int = 3) -> list[T]:
    """Return the k best, best first, by merge sort. A merge stops after k items.

    All merges of a level advance together, with one comparison of each per batch.
    """
    runs = [[candidate] for candidate in candidates]
    while len(runs) > 1:
        merges = [_merge(runs[number], runs[number + 1], k) for number in range(0, len(runs) - 1, 2)]
        runs = _in_lockstep(merges, first_is_better) + runs[len(merges) * 2 :]
    return runs[0] if runs else []


def _merge(left: Sequence[T], right: Sequence[T], k: int) -> Generator[tuple[T, T], bool, list[T]]:
    merged: list[T] = []
    i = j = 0
    while len(merged) < k and i < len(left) and j < len(right):
        if (yield left[i], right[j]):
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return (merged + list(left[i:]) + list(right[j:]))[:k]


def _in_lockstep(
    merges: Sequence[Generator[tuple[T, T], bool, list[T]]], first_is_better: FirstIsBetter[T]
) -> list[list[T]]:
    results: list[list[T]] = [[] for _ in merges]
    waiting: dict[int, tuple[T, T]] = {}
    replies: dict[int, bool | None] = dict.fromkeys(range(len(merges)))
    while replies:
        for place, reply in replies.items():
            try:
                waiting[place] = merges[place].send(reply) if reply is not None else next(merges[place])
            except StopIteration as finished:
                results[place] = finished.value
        verdicts = first_is_better(list(waiting.values())) if waiting else []
        replies = dict(zip(waiting, verdicts, strict=True))
        waiting = {}
    return results


Mode = Literal["chunked", "pairwise", "list", "none"]
"""Tournaments of chunks or of pairs, one list of all, or "none": scores for several paths per prompt."""
SCORED_AT_ONCE = 5
"""Number of paths per prompt for separate scores, as in the thesis."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A path as a judge sees it: its topic, and its parts as text."""

    topic: str
    parts: tuple[str, ...]

    @property
    def chain(self) -> str:
        """The parts without the topic."""
        return " ".join(self.parts)

    @property
    def text(self) -> str:
        """Topic and parts."""
        return f"{self.topic} {self.chain}".strip()


@dataclass(frozen=True)
class ModelPathJudge:
    """Asks a model as the thesis does. `diff` shows two paths as their differences after the shared part."""

    model: LanguageModel
    question: str
    diff: bool = True
    few_shot: bool = False
    reasons: bool = True
    """Ask for reasons, then [A] or [B], as in the thesis. Without reasons, ask for the letter in both orders."""

    def keep_best(self, chunks: Sequence[Sequence[Shown]], counts: Sequence[int]) -> list[Sequence[int]]:
        """Return one list of indexes per chunk, requested as one batch."""
        texts = [_chains(chunk) for chunk in chunks]
        return list(pick_chains(self.model, self.question, texts, counts, self.few_shot))

    def first_is_better(self, pairs: Sequence[tuple[Shown, Shown]]) -> list[bool]:
        """Compare each pair in one prompt. If both look the same, the first wins without a request."""
        shown = [self._pair(*pair) for pair in pairs]
        verdicts = iter(self._better([pair for pair in shown if pair.first != pair.second]))
        return [pair.first == pair.second or next(verdicts) for pair in shown]

    def _better(self, pairs: Sequence[PathPair]) -> list[bool]:
        if self.reasons:
            return first_is_better(self.model, self.question, pairs)
        chosen = ModelChooser(self.model).choose([self._choice(pair) for pair in pairs])
        return [
            (choice.kept[0] == 0) == bool(pair.first or not pair.second)
            for choice, pair in zip(chosen, pairs, strict=True)
        ]

    def scores(self, shown: Sequence[Shown]) -> list[float]:
        """Score five paths per prompt."""
        texts = _chains(shown)
        batches = [texts[start : start + SCORED_AT_ONCE] for start in range(0, len(texts), SCORED_AT_ONCE)]
        return [score for batch in rate_paths(self.model, self.question, batches) for score in batch]

    def _pair(self, first: Shown, second: Shown) -> PathPair:
        if first.topic != second.topic:
            return PathPair("(none)", first.text, second.text)
        same = takewhile(lambda parts: parts[0] == parts[1], zip(first.parts, second.parts, strict=False))
        shared = len(list(same)) if self.diff else 0
        given = " ".join((f"-> GIVEN_TOPIC_ENTITY: {first.topic}", *first.parts[:shared]))
        return PathPair(given, " ".join(first.parts[shared:]), " ".join(second.parts[shared:]))

    def _choice(self, pair: PathPair) -> Choice:
        if pair.first and pair.second:
            return Choice(self.question, (pair.first, pair.second), 1, "candidate", pair.given)
        options = (f"[RELEVANT] {pair.first or pair.second}", "[NOT RELEVANT] nothing more is needed")
        return Choice(self.question, options, 1, "judgement of the candidate", pair.given)


@dataclass(frozen=True)
class LikenessJudge:
    """Compares paths by similarity to the question. It is consistent, so a tournament only sorts."""

    scorer: Scorer
    question: str
    _known: dict[Shown, float] = field(default_factory=dict, repr=False)

    def keep_best(self, chunks: Sequence[Sequence[Shown]], counts: Sequence[int]) -> list[Sequence[int]]:
        """Select by score. Ties stay in the given order."""
        scored = [self.scores(chunk) for chunk in chunks]
        return [best_places(values, count) for values, count in zip(scored, counts, strict=True)]

    def first_is_better(self, pairs: Sequence[tuple[Shown, Shown]]) -> list[bool]:
        """Compare by score. The first wins a tie."""
        self.scores([path for pair in pairs for path in pair])
        return [self._known[first] >= self._known[second] for first, second in pairs]

    def scores(self, shown: Sequence[Shown]) -> list[float]:
        """Score each path once."""
        new = [path for path in dict.fromkeys(shown) if path not in self._known]
        scored = self.scorer.score([Claim(self.question, path.text) for path in new])
        self._known.update((path, score or 0.0) for path, score in zip(new, scored, strict=True))
        return [self._known[path] for path in shown]


PathJudge = ModelPathJudge | LikenessJudge


def select(shown: Sequence[Shown], judge: PathJudge, mode: Mode, keep: int, size: int) -> list[int]:
    """Return the indices of the best `keep`, best first. `size` is the size of chunks."""
    if keep < 1 or size < 2:
        raise InputError(f"width must be at least 1 and chunk at least 2, not {keep} and {size}")
    places = range(len(shown))
    if len(shown) < 2:
        return list(places)
    if mode == "pairwise":
        return pairwise(places, lambda pairs: judge.first_is_better([(shown[a], shown[b]) for a, b in pairs]), keep)
    if mode == "chunked":
        return chunked(
            places,
            lambda chunks, counts: judge.keep_best([[shown[place] for place in chunk] for chunk in chunks], counts),
            keep,
            size,
        )
    if mode == "none":
        return best_places(judge.scores(shown), keep)
    [kept] = judge.keep_best([shown], [min(keep, len(shown))])
    return list(kept)[:keep]


def best_places(values: Sequence[float], count: int) -> list[int]:
    """Return the indices of the highest values. Ties stay in the given order."""
    return sorted(range(len(values)), key=lambda place: -values[place])[:count]


def _chains(shown: Sequence[Shown]) -> list[str]:
    """Return paths in the notation of the thesis. Omit the topic if all paths share it."""
    same_topic = len({path.topic for path in shown}) == 1
    return [path.chain if same_topic else path.text for path in shown]


Stop = Literal["depth", "answered", "converged"]
NAMED_ENDS = 10
"""Maximum number of end entities that a judge sees."""


@dataclass(frozen=True)
class PathSearch:
    """Settings for exploring and choosing paths."""

    mode: Mode = "pairwise"
    filter: Filter = "semantic"
    stop: Stop = "answered"
    width: int = 3
    chunk: int = 4
    filtered: int = 30
    depth: int = 4
    whole: bool = True
    """Whether a judge sees whole paths, or only the last relation of each."""
    seed: int = 0

    def shown(self, path: RelationPath, topic: str) -> Shown:
        """Return a path without its entities."""
        parts = tuple(move.in_words() for move in path.moves)
        return Shown(topic, parts if self.whole else parts[-1:])

    def filter_paths(self, question: str, paths: Sequence[RelationPath], embedder: Embedder) -> list[RelationPath]:
        """Select the paths for the judge."""
        texts = list(map(path_text, paths))
        return [paths[at] for at in prefilter(question, texts, self.filtered, self.filter, embedder, self.seed)]

    def tournament(self, paths: Sequence[RelationPath], topics: Sequence[str], judge: PathJudge) -> list[RelationPath]:
        """Return the best `width` paths, best first. topics[i] is the name of the topic of paths[i]."""
        shown = [self.shown(path, topic) for path, topic in zip(paths, topics, strict=True)]
        return [paths[place] for place in select(shown, judge, self.mode, self.width, self.chunk)]


@dataclass(frozen=True)
class JudgedQuestion:
    """A question as its judges see it, and the judges."""

    question: str
    label: Callable[[int], str]
    """Return the name of a node, or its mask."""
    judge: PathJudge
    answered: Callable[[str], bool] | None = None
    """Check whether a path with its end entities answers the question. None without a model."""


def grow(
    search: PathSearch, explorer: Explorer, topic: NodeSet, asked: JudgedQuestion, embedder: Embedder, *, final: bool
) -> list[RelationPath]:
    """Grow paths hop by hop from the topic. A selected path competes with its continuations.

    `final` ranks the selected paths with their end entities, as System 2 does.
    """
    kept: list[RelationPath] = []
    ends: NodeSet | None = None
    called = asked.label(int(topic.array[0]))
    for depth in range(search.depth):
        with span("tournament", depth=depth + 1) as opened:
            grown = [longer for path in kept or [RelationPath(topic)] for longer in _longer(explorer, path)]
            shown = search.filter_paths(asked.question, grown, embedder)
            pool = [*kept, *(path for path in shown if path not in kept)]
            winners = search.tournament(pool, [called] * len(pool), asked.judge)
            opened.note(candidates=len(grown), shown=len(shown), best=[path.in_words() for path in winners])
        if not winners or winners == kept:
            break
        kept = winners
        aware = [_with_ends(explorer, path, called, asked.label) for path in kept]
        if final and len(kept) > 1:
            order = select(aware, asked.judge, search.mode, search.width, search.chunk)
            kept, aware = [kept[place] for place in order], [aware[place] for place in order]
        if search.stop == "answered" and asked.answered is not None and asked.answered(aware[0].text):
            break
        reached = explorer.execute(kept[0])
        if search.stop == "converged" and ends is not None and reached == ends:
            break
        ends = reached
    return kept


def _with_ends(explorer: Explorer, path: RelationPath, topic: str, label: Callable[[int], str]) -> Shown:
    """Return a path with its end entities as the last part."""
    ends = explorer.execute(path)
    named = ", ".join(label(int(node)) for node in ends.array[:NAMED_ENDS])
    more = f", … ({len(ends)} in all)" if len(ends) > NAMED_ENDS else ""
    return Shown(topic, (*(move.in_words() for move in path.moves), f"= {named}{more}"))


def _longer(explorer: Explorer, path: RelationPath) -> list[RelationPath]:
    """Return the paths that are one hop longer and have end nodes."""
    nodes = explorer.execute(path)
    if path.moves and explorer.leads_to_values(path.moves[-1], nodes):
        return []
    return [path.then(lead.hop) for lead in explorer.leads(nodes) if len(explorer.ends(nodes, lead, path))]
