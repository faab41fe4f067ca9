"""Fit the reader to one base: shift the vectors of its relations and attributes towards users' wordings.

1  wordings: a model writes questions for everything that can be asked; user questions and confirmed answers are added
2  fitting: a softmax over the possible meanings of each question; its weights are the shifts, regularised to zero
3  evaluation: 5-fold cross-validation; the shifts are used only if more held-out questions are read correctly
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from clew.answering.methods.role_choice import reader_of
from clew.answering.queries.relation_paths import Move
from clew.answering.reading.encoders import unit
from clew.answering.reading.fitted import Fitted
from clew.answering.reading.path_ranker import HEADS_OF_LENGTH, Taught, read_taught
from clew.answering.reading.plan import SORTED
from clew.answering.reading.scoring import FOCUS, HEADS, Labels
from clew.answering.reading.vocabulary import Vocabulary
from clew.answering.roles.wordings import NAME, VALUE, Way, WordingTarget, usable, word
from clew.core.disk import refuse_link
from clew.core.errors import CorruptError, InputError
from clew.core.schema import words_of
from clew.lab.training.descent import Doubles, minimize
from clew.models.protocol import LanguageModel
from clew.store.graph.manifest import ASKED, sealed_text, unsealed_or_older
from clew.store.graph.storage import change_file
from clew.store.open_base import OpenBase

MOST = 400
"""Maximum number of relations and of attributes to ask a model about, most frequent first."""
HEAD: dict[Way, str] = {
    "reached": "only",
    "value": "value",
    "most": "extreme",
    "compared": "quantity",
    "true": "switch",
}
PARTS = 5
"""Number of folds."""
HELD = 3.0
"""Strength of the regularisation. Results on three bases hardly differed between 0.3 and 30."""
DESCRIBED = 300
"""Maximum number of words of a type description in the prompt."""


class AskedFor(BaseModel):
    """A line of the file: the relation or attribute, the way to ask, and questions."""

    model_config = ConfigDict(extra="forbid", strict=True)
    about: str
    way: Way
    questions: list[str]


@dataclass(frozen=True, eq=False)
class BaseLessons:
    """Questions as vectors, with the possible labels and the right label of each."""

    turned: Doubles
    """Vectors projected by the head that compares them."""
    right: NDArray[np.int64]
    could: NDArray[np.bool_]
    part: NDArray[np.int64]
    ways: NDArray[np.str_]

    def only(self, chosen: NDArray[np.bool_]) -> BaseLessons:
        """Select a subset of the examples."""
        return BaseLessons(
            self.turned[chosen], self.right[chosen], self.could[chosen], self.part[chosen], self.ways[chosen]
        )


@dataclass(frozen=True)
class FitOutcome:
    """Correctly read held-out questions before and after, and whether the shifts are used."""

    by_way: dict[str, tuple[int, int, int]]
    """Number of questions, correct before, correct after."""
    gained: int
    lost: int
    taken: bool


def fit_to_base(
    tools: OpenBase, model: LanguageModel | None, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> FitOutcome:
    """Fit the reader to a base with wordings from a model, users and feedback."""
    folder, vocabulary = tools.local.folder, reader_of(tools).vocabulary
    asked = read_asked(folder)
    if model is not None:
        known = {(one.about, one.way) for one in asked}
        wanted = [one for one in wanted_of(vocabulary) if (one.about, one.way) not in known]
        wordings = word(model, _types(vocabulary), wanted, progress)
        asked += [AskedFor(about=one.about, way=one.way, questions=list(said)) for one, said in wordings if said]
        if asked:
            keep_asked(folder, asked)
    taught = read_taught(folder)
    if not asked and not taught:
        raise InputError(
            f"{folder} has no example questions: pass a model with --model, "
            f"write {ASKED} there, or confirm answers with `clew feedback`"
        )
    outcome, fitted = fit(tools, asked, taught)
    if fitted is not None:
        fitted.keep(folder)
    return outcome


def fit(tools: OpenBase, asked: Sequence[AskedFor], taught: Sequence[Taught]) -> tuple[FitOutcome, Fitted | None]:
    """Fit the reader to questions. Return no fit if it does not read more of them right than the reader as shipped."""
    reader = reader_of(tools)
    vocabulary, fitted = reader.vocabulary, None
    labels = Labels(vocabulary, reader.encoders, reader.cache)
    vectors = np.concatenate((labels.hops, labels.attributes)).astype(np.float64)
    lessons = lessons_of(labels, asked, taught)
    if lessons is None:  # no question is ambiguous
        return FitOutcome({}, 0, 0, taken=False), None
    before = _is_right(vectors, lessons)
    after = before.copy()
    for part in range(PARTS):
        out = lessons.part == part
        after[out] = _is_right(vectors + fitted_moves(vectors, lessons.only(~out)), lessons.only(out))
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    taken = gained - lost > np.sqrt(gained + lost)
    if taken:
        texts = (*vocabulary.hop_texts, *vocabulary.attribute_texts)
        moves = fitted_moves(vectors, lessons).astype(np.float32)
        moved = {text: move for text, move in zip(texts, moves, strict=True) if move.any()}
        fitted = Fitted(reader.encoders.version, moved)
    by_way = {}
    for way, count in Counter(lessons.ways.tolist()).items():
        own = lessons.ways == way
        by_way[way] = (count, int(before[own].sum()), int(after[own].sum()))
    return FitOutcome(by_way, gained, lost, bool(taken)), fitted


def wanted_of(vocabulary: Vocabulary) -> list[WordingTarget]:
    """Return everything that can be asked, relations with most edges first."""
    counts = np.repeat([row.count for row in vocabulary.schema.relations], 2)
    wanted = []
    for place in np.argsort(-counts, kind="stable")[:MOST]:
        hop, row = vocabulary.hops[place], vocabulary.schema.relations[place // 2]
        start, end, head, tail = (vocabulary.type_words(kind) for kind in (hop.start, hop.end, row.head, row.tail))
        said = f" ({row.description})" if row.description else ""
        fact = f"{head} → {words_of(row.display or row.name)} → {tail}{said}"
        words = f"given a {start}, written as {NAME}, each {end} that is there as: {fact}"
        wanted.append(WordingTarget(vocabulary.hop_texts[place], "reached", words))
    for attribute, text in list(zip(vocabulary.attributes, vocabulary.attribute_texts, strict=True))[:MOST]:
        owner, name = vocabulary.type_words(attribute.owner), f"{words_of(attribute.name)} ({attribute.kind})"
        wanted.append(WordingTarget(text, "value", f"given a {owner}, written as {NAME}, its {name}"))
        if attribute.kind in SORTED:
            wanted.append(WordingTarget(text, "most", f"the {owner} with the greatest or the least {name}"))
            more = f"each {owner} whose {name} is more or less than, before or after a value, written as {VALUE}"
            wanted.append(WordingTarget(text, "compared", more))
        elif attribute.kind == "boolean":
            wanted.append(WordingTarget(text, "true", f"each {owner} for which {name} is true or, now and then, false"))
    return wanted


def lessons_of(labels: Labels, asked: Sequence[AskedFor], taught: Sequence[Taught]) -> BaseLessons | None:
    """Return the examples: questions with more than one possible meaning."""
    rows = [*_worded(labels.vocabulary, asked), *_confirmed(labels.vocabulary, taught)]
    rows = [row for row in rows if row[2].sum() > 1]
    if not rows:
        return None
    texts, right, could, part, heads = zip(*rows, strict=True)
    pairs = labels.encoders.heads["pairs"]
    vectors = unit(labels.encoders.meaning(texts))
    turned = [vector @ pairs[HEADS.index(head)] for vector, head in zip(vectors, heads, strict=True)]
    ways = {head: way for way, head in HEAD.items()}
    return BaseLessons(
        np.array(turned, dtype=np.float64),
        np.array(right),
        np.stack(could),
        np.array(part),
        np.array([ways.get(head, "reached") for head in heads]),
    )


_Row = tuple[str, int, NDArray[np.bool_], int, str]
"""A masked question, the index of its meaning among hops and attributes, all possible meanings, its fold, its head."""


def _worded(vocabulary: Vocabulary, asked: Sequence[AskedFor]) -> Iterator[_Row]:
    hops, attributes = vocabulary.hops, vocabulary.attributes
    places = {text: place for place, text in enumerate((*vocabulary.hop_texts, *vocabulary.attribute_texts))}
    for one in asked:
        place = places.get(one.about)
        if place is None or (place < len(hops)) != (one.way == "reached"):
            continue  # the schema has changed
        if one.way == "reached":
            kind, could = hops[place].start, _leaving(vocabulary, hops[place].start)
        else:
            own = attributes[place - len(hops)]
            allowed = {"most": SORTED, "compared": SORTED, "true": {"boolean"}}.get(one.way)
            fits = [other.owner == own.owner and (not allowed or other.kind in allowed) for other in attributes]
            kind, could = own.owner, np.array([*[False] * len(hops), *fits])
        of_value = "date" if one.way == "compared" and attributes[place - len(hops)].kind == "date" else "number"
        for number, question in enumerate(usable(one.way, one.questions)):
            masked = question.replace(NAME, f" {FOCUS} {vocabulary.type_words(kind)} {FOCUS} ")
            if one.way == "compared":
                masked = masked.replace(VALUE, f" {FOCUS} {of_value} {FOCUS} ")
            yield " ".join(masked.split()), place, could, number % PARTS, HEAD[one.way]


def _confirmed(vocabulary: Vocabulary, taught: Sequence[Taught]) -> Iterator[_Row]:
    for number, one in enumerate(taught):
        for path in _walks(vocabulary, one)[:1]:
            for place, head in zip(path, HEADS_OF_LENGTH[len(path)], strict=True):
                could = _leaving(vocabulary, vocabulary.hops[place].start)
                yield one.question, place, could, number % PARTS, head


def _walks(vocabulary: Vocabulary, taught: Taught) -> list[tuple[int, ...]]:
    """Return the hop sequences of confirmed moves that start at the masked type in the question."""
    walks: list[tuple[int, ...]] = [()]
    for move in taught.moves if len(taught.moves) in HEADS_OF_LENGTH else ():
        walks = [
            (*walk, index)
            for walk in walks
            for index, hop in enumerate(vocabulary.hops)
            if Move(hop.relation, hop.direction) == move
            and (vocabulary.hops[walk[-1]].end == hop.start if walk else _masks(vocabulary, taught, hop.start))
        ]
    return [walk for walk in walks if walk]


def _masks(vocabulary: Vocabulary, taught: Taught, kind: str) -> bool:
    return f"{FOCUS} {vocabulary.type_words(kind)} {FOCUS}" in taught.question


def _leaving(vocabulary: Vocabulary, kind: str) -> NDArray[np.bool_]:
    """Return a mask of the hops that leave a type."""
    return np.array([*(hop.start == kind for hop in vocabulary.hops), *[False] * len(vocabulary.attributes)])


def fitted_moves(vectors: Doubles, lessons: BaseLessons) -> Doubles:
    """Compute the shift of each label that best fits the questions."""
    rows = np.arange(len(lessons.right))

    def loss(flat: Doubles) -> tuple[float, Doubles]:
        raw = np.where(lessons.could, lessons.turned @ (vectors + flat.reshape(vectors.shape)).T, -np.inf)
        logged = raw - np.logaddexp.reduce(raw, axis=1, keepdims=True)
        off = np.exp(logged)
        off[rows, lessons.right] -= 1
        value = -float(logged[rows, lessons.right].sum()) + HELD * float(flat @ flat)
        return value, (off.T @ lessons.turned).ravel() + 2 * HELD * flat

    return minimize(loss, np.zeros(vectors.size), rounds=80, tolerance=1e-6).reshape(vectors.shape)


def _is_right(vectors: Doubles, lessons: BaseLessons) -> NDArray[np.bool_]:
    raw = np.where(lessons.could, lessons.turned @ vectors.T, -np.inf)
    return np.asarray(raw.argmax(axis=1) == lessons.right)


def read_asked(folder: Path) -> list[AskedFor]:
    """Read the stored wordings of a base."""
    file = folder / ASKED
    refuse_link(file)
    if not file.exists():
        return []
    lines = []
    content = unsealed_or_older(file.read_bytes())
    if content is None:
        raise CorruptError(f"{file} was changed: if you edited it, remove its first line")
    for number, line in enumerate(content.splitlines(), 1):
        try:
            lines.append(AskedFor.model_validate_json(line))
        except ValidationError as error:
            expected = '{"about": "film → director → person", "way": "reached", "questions": ["who made []"]}'
            raise CorruptError(f"{file}, line {number} is not of the form {expected}: correct or remove it") from error
    return lines


def keep_asked(folder: Path, asked: Sequence[AskedFor]) -> None:
    """Store the wordings next to the base."""
    lines = "".join(one.model_dump_json() + "\n" for one in asked).encode()
    change_file(folder, ASKED, lambda _: sealed_text(lines))


def _types(vocabulary: Vocabulary) -> str:
    lines = []
    for kind in vocabulary.schema.node_types[:MOST]:
        about = f": {' '.join(kind.description.split()[:DESCRIBED])}" if kind.description else ""
        lines.append(f"- {vocabulary.type_words(kind.name)}{about}")
    return "\n".join(lines)
