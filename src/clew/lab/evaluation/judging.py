"""Compare answers with gold answers and score questions."""

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
"""Returns the aliases of a node."""


@lru_cache(maxsize=1 << 16)
def normalise_name(name: str) -> str:
    """Normalise case, Unicode form, underscores and spaces."""
    plain = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return " ".join(plain.replace("_", " ").split()).casefold()


_NOTHING: frozenset[int] = frozenset()


class GoldAnswers:
    """The gold answers of one question. Answers that are equal after normalisation count once."""

    def __init__(self, answers: Sequence[str], aliases: Mapping[str, Sequence[str]], match: Match) -> None:
        self.match = match
        self._form = _FORMS[match]
        self._numbers: dict[str, frozenset[int]] = {}
        firsts: set[str] = set()
        for answer in answers:
            first = self._form(answer)
            if not first or first in firsts:
                continue
            number = frozenset((len(firsts),))
            firsts.add(first)
            for name in (first, *map(self._form, aliases.get(answer, ()))):
                if name:
                    self._numbers[name] = self._numbers.get(name, _NOTHING) | number
        self._count = len(firsts)

    def __len__(self) -> int:
        return self._count

    def named_by(self, node: NodeRef, names_of: NamesOf) -> frozenset[int]:
        """Return the numbers of the gold answers that match this node."""
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
        """Return the matching gold answers of each candidate."""
        return [self.named_by(candidate.node, names_of) for candidate in candidates]


def _squeezed(name: str) -> str:
    """Remove case and spaces, like Think-on-Graph. Unlike its evaluator, empty names do not match."""
    return normalise_name(name).replace(" ", "")


_FORMS: Mapping[Match, Callable[[str], str]] = {"key": str, "strict": normalise_name, "lenient": _squeezed}


PRIMARY: Mapping[Kind, str] = {"retrieval": "hit@1", "graph": "hit@1", "documents": "recall@5"}
"""The main metric of each kind, used to compare methods and to sort failures."""

BUDGET = 30
"""Number of passages that KGP passes to its reader. SF-EM and precision use this cutoff."""

READING = ("em", "f1")
"""Metrics of written answers. Omitted if no answer of a run has text."""


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """The metrics of one question, its number of gold answers, and their ranks."""

    metrics: Mapping[str, float]
    gold: int
    places: tuple[int, ...] = ()
    proposed: int = 0
    """Number of candidates in the answer set."""


def score(question: Question, answer: Answer | None, kind: Kind, match: Match, names_of: NamesOf) -> QuestionScore:
    """Compute the metrics of this kind of data set. All are 0 if there is no answer."""
    if kind == "documents":
        return _score_documents(question, answer)
    given = question.value is not None and answer is not None and answer.value is not None
    if kind == "graph" and (given or not question.answers):
        return _score_value(question, answer)
    gold = GoldAnswers(question.answers, question.aliases, match)
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
        return QuestionScore(values, count, first_places(found), len(proposed))
    return QuestionScore(values, count, first_places(found))


NEAR = 1e-3
"""Maximum relative difference between equal numbers."""


def same_value(value: bool | int | float | str | None, gold: bool | int | float | str) -> bool:
    """Return whether a value is right. Booleans match exactly, numbers within `NEAR`, text case-insensitively."""
    if value is None or isinstance(value, bool) != isinstance(gold, bool):
        return False
    try:
        return abs(float(value) - float(gold)) <= NEAR * max(1.0, abs(float(gold)))
    except ValueError:
        return normalise_name(str(value)) == normalise_name(str(gold))


def _score_value(question: Question, answer: Answer | None) -> QuestionScore:
    """Score a value, or an empty answer if the base has no answer, as right or wrong."""
    if question.value is None:
        right = answer is None or (answer.value is None and not answer.answer_set)
    else:
        right = answer is not None and same_value(answer.value, question.value)
    names = ("hit@1", "hit@5", "recall@20", "recall@20/min", "mrr", "hits@1", "f1", "exact")
    return QuestionScore(dict.fromkeys(names, float(right)), 1, (1,) if right else ())


def _of_answer_set(answer: Answer | None, found: list[frozenset[int]]) -> list[frozenset[int]]:
    """Return the matches of the candidates in the answer set."""
    if answer is None:
        return []
    proposed = set(map(id, answer.answer_set))
    return [named for candidate, named in zip(answer.candidates, found, strict=True) if id(candidate) in proposed]


def _score_documents(question: Question, answer: Answer | None) -> QuestionScore:
    gold = GoldAnswers(question.passages, question.aliases, "key")
    found = gold.find(answer.candidates, lambda _: ()) if answer else []
    values = {f"recall@{k}": metrics.recall(found, len(gold), k) for k in (2, 5, 20)}
    values |= {"sf-em": metrics.covered(found, len(gold), BUDGET), "precision": metrics.precision(found[:BUDGET])}
    if question.answers:
        text = (answer.text or "") if answer else ""
        values |= {"em": metrics.text_exact(text, question.answers), "f1": metrics.text_f1(text, question.answers)}
    if question.structures:
        values["struct-em"] = 0.0 if answer is None else float(structures_in(answer).issuperset(question.structures))
    return QuestionScore(values, len(gold), first_places(found))


def structures_in(answer: Answer) -> set[str]:
    """Return the keys of the pages and tables used for an answer: located structures and the pages of its passages.

    Struct-EM checks that they include the structures named by the question (Knowledge Graph Prompting, 5.1.3).
    """
    found = {str(part["node"]) for part in answer.query.get("structure", ())}
    for candidate in answer.candidates[:BUDGET]:
        found.add(candidate.node.key)
        for piece in candidate.evidence:
            if isinstance(piece, Passage) and piece.file is not None and piece.page is not None:
                found.add(page_key(piece.file, piece.page))
    return found


def first_places(found: metrics.Found) -> tuple[int, ...]:
    """Return the first rank, starting at 1, of each gold answer in the results."""
    seen: set[int] = set()
    places: list[int] = []
    for place, named in enumerate(found, 1):
        if named:
            places += [place] * len(named - seen)
            seen |= named
    return tuple(places)
