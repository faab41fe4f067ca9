"""When an answer counts as right, and what a question scores."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from clew.core.types import Answer, Candidate, NodeRef, Passage
from clew.documents.rows import page_key
from clew.lab.datasets.questions import Kind, Match, Question
from clew.lab.evaluation import metrics

NamesOf = Callable[[NodeRef], Iterable[str]]
"""All names of a node beside the one it shows: its aliases."""


@lru_cache(maxsize=1 << 16)
def normalise_name(name: str) -> str:
    """Case, width and accents' encoding, underscores and spaces do not matter; every other character does."""
    plain = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return " ".join(plain.replace("_", " ").split()).casefold()


_NOTHING: frozenset[int] = frozenset()


class Gold:
    """The gold answers of one question; wordings that are the same after normalisation are one answer."""

    def __init__(self, answers: Sequence[str], aliases: Mapping[str, Sequence[str]], match: Match) -> None:
        self.match = match
        self._form = _FORMS[match]
        self._count = 0
        self._numbers: dict[str, frozenset[int]] = {}
        firsts: set[str] = set()
        for answer in answers:
            first = self._form(answer)
            if not first or first in firsts:
                continue
            firsts.add(first)
            number = frozenset((self._count,))
            self._count += 1
            for name in (first, *map(self._form, aliases[answer])) if answer in aliases else (first,):
                if name:
                    self._numbers[name] = self._numbers[name] | number if name in self._numbers else number

    def __len__(self) -> int:
        return self._count

    def named_by(self, node: NodeRef, names_of: NamesOf) -> frozenset[int]:
        """The numbers of the gold answers that this node is."""
        if self.match == "key":
            return self._numbers.get(node.key, _NOTHING)
        names = (node.key, *names_of(node)) if node.key == node.name else (node.key, node.name, *names_of(node))
        found = _NOTHING
        for form in map(self._form, names):
            if form in self._numbers:
                found |= self._numbers[form]
            if form and self.match == "lenient":
                found = found.union(*(n for name, n in self._numbers.items() if name in form or form in name))
        return found

    def find(self, candidates: Iterable[Candidate], names_of: NamesOf) -> list[frozenset[int]]:
        """For each candidate the gold answers it names."""
        return [self.named_by(candidate.node, names_of) for candidate in candidates]


def _squeezed(name: str) -> str:
    """Think-on-Graph compares without case and spaces; empty names never match, unlike in its evaluator."""
    return normalise_name(name).replace(" ", "")


_FORMS: Mapping[Match, Callable[[str], str]] = {"key": str, "strict": normalise_name, "lenient": _squeezed}


PRIMARY: Mapping[Kind, str] = {"retrieval": "hit@1", "graph": "hit@1", "documents": "recall@5"}
"""The metric shown first, compared between methods, and by which failures are sorted."""

BUDGET = 30
"""Passages KGP hands to its reader: SF-EM and precision are taken over so many."""

READING = ("em", "f1")
"""Metrics of a written answer, left out where no answer of a run has one."""


@dataclass(frozen=True, slots=True)
class Score:
    """The metrics of one question, how many gold answers it has, and the places at which they were found."""

    metrics: Mapping[str, float]
    gold: int
    places: tuple[int, ...] = ()
    proposed: int = 0
    """How many candidates were put forward as the answer."""


def score(question: Question, answer: Answer | None, kind: Kind, match: Match, names_of: NamesOf) -> Score:
    """The metrics of this kind of data set; all are 0 where there is no answer."""
    if kind == "documents":
        return _score_documents(question, answer)
    given = question.value is not None and answer is not None and answer.value is not None
    if kind == "graph" and (given or not question.answers):
        return _score_value(question, answer)
    gold = Gold(question.answers, question.aliases, match)
    found = gold.find(answer.candidates, names_of) if answer else []
    count = len(gold)
    values = {
        "hit@1": metrics.hit(found, 1),
        "hit@5": metrics.hit(found, 5),
        "recall@20": metrics.recall(found, count, 20),
        "recall@20/min": metrics.capped_recall(found, count, 20),
        "mrr": metrics.reciprocal_rank(found),
    }
    if kind == "graph":
        proposed = _of_answer_set(answer, found)
        values |= {
            "hits@1": values["hit@1"],
            "f1": metrics.f1(proposed, count),
            "exact": metrics.exact(proposed, count),
        }
        return Score(values, count, first_places(found), len(proposed))
    return Score(values, count, first_places(found))


NEAR = 1e-3
"""Numbers that differ by less than this share are the same."""


def same_value(value: bool | int | float | str | None, gold: bool | int | float | str) -> bool:
    """Whether a value is the right one: the truth itself, a number up to rounding, a text whatever its case."""
    if value is None or isinstance(value, bool) != isinstance(gold, bool):
        return False
    try:
        return abs(float(value) - float(gold)) <= NEAR * max(1.0, abs(float(gold)))
    except ValueError:
        return normalise_name(str(value)) == normalise_name(str(gold))


def _score_value(question: Question, answer: Answer | None) -> Score:
    """Right or wrong: a value, or that nothing is put forward where the base has no answer."""
    if question.value is None:
        right = answer is None or (answer.value is None and not answer.answer_set)
    else:
        right = answer is not None and same_value(answer.value, question.value)
    names = ("hit@1", "hit@5", "recall@20", "recall@20/min", "mrr", "hits@1", "f1", "exact")
    return Score(dict.fromkeys(names, float(right)), 1, (1,) if right else ())


def _of_answer_set(answer: Answer | None, found: list[frozenset[int]]) -> list[frozenset[int]]:
    """What the candidates of the answer set name; each candidate has been looked up already."""
    if answer is None:
        return []
    proposed = set(map(id, answer.answer_set))
    return [named for candidate, named in zip(answer.candidates, found, strict=True) if id(candidate) in proposed]


def _score_documents(question: Question, answer: Answer | None) -> Score:
    gold = Gold(question.passages, question.aliases, "key")
    found = gold.find(answer.candidates, lambda _: ()) if answer else []
    values = {f"recall@{k}": metrics.recall(found, len(gold), k) for k in (2, 5, 20)}
    values |= {
        "sf-em": metrics.covered(found, len(gold), BUDGET),
        "precision": metrics.precision(found[:BUDGET]),
    }
    if question.answers:
        text = (answer.text or "") if answer else ""
        values |= {"em": metrics.text_exact(text, question.answers), "f1": metrics.text_f1(text, question.answers)}
    if question.structures:
        values["struct-em"] = 0.0 if answer is None else float(structures_in(answer).issuperset(question.structures))
    return Score(values, len(gold), first_places(found))


def structures_in(answer: Answer) -> set[str]:
    """Keys of the pages and tables that an answer was looked for in: those it located, and where its passages stand.

    Struct-EM asks whether the structures that a question names are among them (Knowledge Graph Prompting, 5.1.3).
    """
    found = {str(part["node"]) for part in answer.query.get("structure", ())}
    for candidate in answer.candidates[:BUDGET]:
        found.add(candidate.node.key)
        for piece in candidate.evidence:
            if isinstance(piece, Passage) and piece.file is not None and piece.page is not None:
                found.add(page_key(piece.file, piece.page))
    return found


def first_places(found: metrics.Found) -> tuple[int, ...]:
    """For each gold answer that was found its first place, counted from 1."""
    seen: set[int] = set()
    places: list[int] = []
    for place, named in enumerate(found, 1):
        if named:
            places += [place] * len(named - seen)
            seen |= named
    return tuple(places)
