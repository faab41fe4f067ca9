"""Train a language model to write the missing evidence of a question (Wang et al., AAAI 2024, appendix).

The paper's instruction is "What evidence do we need to answer the question given the current evidence?". Here the model
learns from the prompt of the generative traverser, with whole passages as the current evidence, like at inference:

a supporting passage       → the content of the first missing passage
a non-supporting passage   → the content of the first passage, because most seeds of a walk are not supporting
both                       → the content of the first missing passage
all supporting passages    → that there is enough evidence
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from clew.answering.roles.write import ModelWriter, UncoveredPart, asking_for_evidence, next_reply
from clew.core.errors import InputError
from clew.core.roles import Draft, Writer
from clew.lab.datasets.load import load_dataset
from clew.lab.datasets.questions import Dataset, Paragraph, Question
from clew.lab.training.fine_tuning import LEFT_OUT, TRAINED_ON, Course, TunedTask, fine_tune, sample
from clew.lab.training.language import ChatExample
from clew.models.embedding.opening import open_embedder
from clew.models.protocol import Embedder, LanguageModel
from clew.store.index.tokens import terms

ROOM = 4096
"""Maximum number of evidence tokens, like for a model with a context of 8,192."""
OTHERS = 2
"""Number of non-supporting passages per question."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """A question with found passages and missing ones, the next one first."""

    question: str
    found: tuple[Paragraph, ...]
    missing: tuple[Paragraph, ...]
    among: tuple[Paragraph, ...]
    """The passages given with the question, without the found ones."""
    says: str
    """Content of the next passage. Empty if none is missing."""

    @property
    def draft(self) -> Draft:
        """Input for a writer."""
        return Draft(self.question, tuple(one.text for one in self.found))


def lacking_in(dataset: Dataset, seed: int = 0) -> dict[str, list[Lacking]]:
    """Return the states of each question with several gold passages, by question id."""
    passages = {paragraph.key: paragraph for paragraph in dataset.paragraphs}
    states = {}
    for question in dataset.questions:
        gold = _in_order(question, [passages[key] for key in question.passages])
        if len(gold) < 2:
            continue
        given = [passages[key] for key in dataset.contexts.get(question.id, ())]
        others = [one for one in given if one not in gold]
        drawn = random.Random(f"{seed} {question.id}").sample(others, min(OTHERS, len(others)))
        found = [*((one,) for one in gold), *((one,) for one in drawn), *((gold[0], one) for one in drawn[:1]), gold]
        states[question.id] = [_lacking(question, gold, tuple(given), own) for own in found]
    if not states:
        raise InputError(f"{dataset.name} has no question with two supporting passages: use HotpotQA, 2Wiki or MuSiQue")
    return states


def _in_order(question: Question, gold: Sequence[Paragraph]) -> tuple[Paragraph, ...]:
    """Sort passages named in the question first."""
    asked = set(terms(question.text))
    return tuple(sorted(gold, key=lambda one: not asked.issuperset(terms(one.title.partition("(")[0]))))


def _lacking(
    question: Question, gold: Sequence[Paragraph], given: Sequence[Paragraph], found: Sequence[Paragraph]
) -> Lacking:
    missing = tuple(one for one in gold if one not in found)
    among = tuple(one for one in given if one not in found)
    return Lacking(question.text, tuple(found), missing, among, _said(question, missing[0]) if missing else "")


def _said(question: Question, paragraph: Paragraph) -> str:
    """Return the supporting sentences or the first one. Add the title if they do not contain it."""
    named = [at for key, at in question.extra.get("supporting_facts", ()) if key == paragraph.key]
    chosen = [paragraph.sentences[at] for at in named if at < len(paragraph.sentences)] or paragraph.sentences[:1]
    text = " ".join(" ".join(chosen).split())
    return text if set(terms(text)).issuperset(terms(paragraph.title)) else f"{paragraph.title}: {text}"


def lessons_from(states: Sequence[Lacking]) -> list[ChatExample]:
    """Build one example per state."""
    lessons = []
    for one in states:
        prompt = tuple(map(asdict, asking_for_evidence(one.draft, ROOM).messages))
        lessons.append(ChatExample(prompt, next_reply(one.says)))
    return lessons


def measure(states: Sequence[Lacking], writer: Writer, embedder: Embedder) -> dict[str, float]:
    """Measure how often a missing passage is closest to the written text, and how often "enough" is right."""
    written = [one.texts[0] if one.texts else "" for one in writer.next_evidence([one.draft for one in states])]
    asked = embedder.embed([text or one.question for one, text in zip(states, written, strict=True)], role="query")
    passages = list({other: None for one in states for other in one.among})
    vectors = embedder.embed([f"{other.title}\n{other.text}" for other in passages], role="document")
    place = {other: at for at, other in enumerate(passages)}
    first, enough, stopped = [], [], []
    for one, text, vector in zip(states, written, asked, strict=True):
        if not one.missing:
            enough.append(not text)
            continue
        stopped.append(not text)
        near = vectors[[place[other] for other in one.among]] @ vector
        first.append(one.among[int(np.argmax(near))] in one.missing)
    shares = {"next_passage_first": first, "enough_said": enough, "stopped_early": stopped}
    return {name: float(np.mean(found)) for name, found in shares.items() if found}


def train_traverser(sources: Sequence[str], course: Course, measured_on: Sequence[str] = ()) -> dict[str, float]:
    """Train on data sets (`hotpotqa:FILE`) except the holdout. Measure like Graph2Text."""
    seed = course.tuning.seed
    asked = {f"{name} {id}": own for name in sources for id, own in lacking_in(load_dataset(name), seed).items()}
    learned, apart = ([one for own in part for one in own] for part in course.parted(asked))
    sets = {TRAINED_ON: learned, LEFT_OUT: apart}
    for name in measured_on:
        sets[name] = [one for own in lacking_in(load_dataset(name), seed).values() for one in own]
    embedder, decisive = open_embedder(), "next_passage_first"

    def measured(own: Sequence[Lacking], model: LanguageModel) -> dict[str, float]:
        return measure(own, ModelWriter(model), embedder)

    least = measure(sample(apart, seed), UncoveredPart(), embedder)[decisive]
    return fine_tune(TunedTask("traverser", sets, measured, decisive, least), lessons_from(learned), sources, course)
