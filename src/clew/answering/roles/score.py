"""Scoring candidates 0..1: by a model's stated score or how likely it says yes, or without one by meaning and words."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field

from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.roles import Claim, Score
from clew.models.protocol import Alternatives, Completion, Embedder, LanguageModel
from clew.models.structured import Ask, Prompt, Reply, ask, object_schema, read_json
from clew.models.tokens import cut_to_question
from clew.store.index.tokens import terms

STATED = Prompt.load("clew.answering.roles.prompts", "score")
YES_NO = Prompt.load("clew.answering.roles.prompts", "score_yes_no")
SCHEMA = object_schema({"score": {"type": "number"}})
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
SHORT_REPLY = 80


class _Score(Reply):
    score: float = Field(ge=0, le=1, allow_inf_nan=False)


def read_score(completion: Completion) -> float:
    """The score in a JSON reply, or the only number of a short one: models say `.85`, `Score: 1`, `0`."""
    try:
        return read_json(completion.text, _Score).score
    except ReplyError as failure:
        text = completion.text.strip()
        numbers = {float(number) for number in _NUMBER.findall(text)} if len(text) <= SHORT_REPLY else set()
        if len(numbers) == 1 and 0 <= (only := numbers.pop()) <= 1 and "%" not in text:
            return only
        raise ReplyError(f"expected one score between 0.0 and 1.0: {failure}") from failure


def read_yes_no(completion: Completion) -> float:
    """How probable yes is: from the alternatives of the first token where the model gives them, otherwise 1 or 0."""
    if completion.logprobs:
        yes, no = (_probability(completion.logprobs[0], word) for word in ("yes", "no"))
        if yes + no > 0.1:
            return yes / (yes + no)
    word = re.match(r"\W*(yes|no)\b", completion.text, re.IGNORECASE)
    if word is None:
        raise ReplyError("expected yes or no")
    return 1.0 if word[1].lower() == "yes" else 0.0


def _probability(alternatives: Alternatives, word: str) -> float:
    return sum(math.exp(min(0.0, logprob)) for token, logprob in alternatives.items() if token.strip().lower() == word)


@dataclass(frozen=True)
class ModelScorer:
    """Asks a model about each claim; one unreadable reply costs one candidate its score and nothing else."""

    model: LanguageModel
    how: Literal["stated", "likelihood"] = "stated"
    """A number the model states, or the probability with which it says yes: finer, and one token short."""
    document_tokens: int = 1500
    """Longer documents are cut to what the question needs."""

    def score(self, claims: Sequence[Claim]) -> list[Score]:
        """None, with its problem, for a claim that could not be scored: its earlier place should stand."""
        scores = []
        for outcome in ask(self.model, [self._ask(claim) for claim in claims], role="score"):
            if outcome.problem is not None:
                trace.fallback("score", outcome.problem, "the candidate keeps its place")
            scores.append(Score(outcome.value, problem=outcome.problem))
        return scores

    def _ask(self, claim: Claim) -> Ask[float]:
        room = min(self.document_tokens, self.model.context_tokens - 400)
        document = cut_to_question(claim.document, claim.question, room) if claim.document else ""
        prompt = STATED if self.how == "stated" else YES_NO
        filled = prompt.fill(question=claim.question, candidate=claim.candidate, document=document)
        if self.how == "stated":
            return Ask(filled, read_score, schema=SCHEMA, max_tokens=24)
        return Ask(filled, read_yes_no, max_tokens=2, top_logprobs=8)


CONSTANT, DOCUMENT_COSINE, NAME_COSINE, COVERAGE = -3.9, 3.8, 1.3, 2.6
"""A logistic regression over three likenesses of a claim to its question, fitted by benchmarks/calibrate_scorer.py to
one right candidate among five, equally over HotpotQA, 2WikiMultiHopQA and STaRK-PRIME train questions, for the embedder
that ships."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """How a claim resembles its question: in meaning, as a whole and by its name, and in words."""

    document_cosine: float
    name_cosine: float
    coverage: float

    def probability(self) -> float:
        """How probable it is that the candidate answers."""
        logit = CONSTANT + DOCUMENT_COSINE * self.document_cosine
        logit += NAME_COSINE * self.name_cosine + COVERAGE * self.coverage
        return 1 / (1 + math.exp(-logit))


@dataclass(frozen=True)
class FusedScorer:
    """Scores without a model: likeness in meaning of document and name, and the share of the question's words covered.

    Rare words count more; how rare a word is, the claims of the same question show.
    """

    embedder: Embedder

    def score(self, claims: Sequence[Claim]) -> list[Score]:
        """The probability of each claim by its likeness."""
        return [Score(like.probability()) for like in self.compare(claims)]

    def compare(self, claims: Sequence[Claim]) -> list[Likeness]:
        """What the scores are made of; all texts are embedded as one batch."""
        if not claims:
            return []
        questions = list(dict.fromkeys(claim.question for claim in claims))
        place = {question: row for row, question in enumerate(questions)}
        asked = self.embedder.embed(questions, role="query")[[place[claim.question] for claim in claims]]
        texts = [_text(claim) for claim in claims]
        documents = self.embedder.embed(texts, role="document")
        names = self.embedder.embed([claim.candidate for claim in claims], role="document")
        cosines = np.einsum("ij,ij->i", asked, documents), np.einsum("ij,ij->i", asked, names)
        return [
            Likeness(float(document), float(name), coverage)
            for document, name, coverage in zip(*cosines, _coverages(claims, texts), strict=True)
        ]


def _text(claim: Claim) -> str:
    return f"{claim.candidate}. {claim.document}" if claim.document else claim.candidate


def _coverages(claims: Sequence[Claim], texts: Sequence[str]) -> list[float]:
    """For each claim the weight of the question's terms that its text holds, as a share of all."""
    held = [set(terms(text)) for text in texts]
    asked = {claim.question: frozenset(terms(claim.question)) for claim in claims}
    beside: dict[str, Counter[str]] = {question: Counter() for question in asked}
    count: Counter[str] = Counter()
    for claim, found in zip(claims, held, strict=True):
        beside[claim.question].update(found & asked[claim.question])
        count[claim.question] += 1
    coverages = []
    for claim, found in zip(claims, held, strict=True):
        frequency, total = beside[claim.question], count[claim.question]
        weight = {term: math.log(1 + (total + 1) / (frequency[term] + 1)) for term in asked[claim.question]}
        whole = sum(weight[term] for term in sorted(weight))
        coverages.append(sum(weight[term] for term in sorted(weight) if term in found) / whole if whole else 0.0)
    return coverages
