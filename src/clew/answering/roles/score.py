"""Score candidates from 0 to 1: by a model's number or its probability of yes, or by meaning and words."""

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
from clew.core.roles import Claim
from clew.models.protocol import Alternatives, Completion, Embedder, LanguageModel
from clew.models.structured import Ask, Prompt, TypedReply, ask, object_schema, read_json
from clew.models.tokens import cut_to_question
from clew.store.index.tokens import terms

STATED = Prompt.load("clew.answering.roles.prompts", "score")
YES_NO = Prompt.load("clew.answering.roles.prompts", "score_yes_no")
SCHEMA = object_schema({"score": {"type": "number"}})
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
SHORT_REPLY = 80
"""Maximum characters of a reply without JSON whose only number is the score."""


class _Score(TypedReply):
    score: float = Field(ge=0, le=1, allow_inf_nan=False)


def read_score(completion: Completion) -> float:
    """Return the score in a JSON reply, or the only number of a short reply such as `.85`, `Score: 1` or `0`."""
    try:
        return read_json(completion.text, _Score).score
    except ReplyError as failure:
        text = completion.text.strip()
        numbers = {float(number) for number in _NUMBER.findall(text)} if len(text) <= SHORT_REPLY else set()
        if len(numbers) == 1 and 0 <= (only := numbers.pop()) <= 1 and "%" not in text:
            return only
        raise ReplyError(f"expected one score between 0.0 and 1.0: {failure}") from failure


def read_yes_no(completion: Completion) -> float:
    """Return the probability of yes: from the logprobs of the first token if there are any, otherwise 1 or 0."""
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
    """Asks a model about each claim. An unreadable reply affects only its own candidate."""

    model: LanguageModel
    how: Literal["stated", "likelihood"] = "stated"
    """A number that the model states, or the probability that it answers yes, which is finer and needs one token."""
    document_tokens: int = 1500
    """Maximum length of a document, in tokens. Longer documents are cut to the parts that the question needs."""

    def score(self, claims: Sequence[Claim]) -> list[float | None]:
        """Return the scores. A claim without a score should stay at its rank."""
        outcomes = ask(self.model, [self._ask(claim) for claim in claims], role="score")
        for outcome in outcomes:
            if outcome.problem is not None:
                trace.fallback("score", outcome.problem, "the candidate keeps its rank")
        return [outcome.value for outcome in outcomes]

    def _ask(self, claim: Claim) -> Ask[float]:
        room = min(self.document_tokens, self.model.context_tokens - 400)
        document = cut_to_question(claim.document, claim.question, room) if claim.document else ""
        prompt = STATED if self.how == "stated" else YES_NO
        filled = prompt.fill(question=claim.question, candidate=claim.candidate, document=document)
        if self.how == "stated":
            return Ask(filled, read_score, schema=SCHEMA, max_tokens=24)
        return Ask(filled, read_yes_no, max_tokens=2, top_logprobs=8)


CONSTANT, DOCUMENT_COSINE, NAME_COSINE, COVERAGE = -3.9, 3.8, 1.3, 2.6
"""Coefficients of a logistic regression over three similarities of a claim to its question.

Fitted by benchmarks/calibrate_scorer.py to one right candidate among five, equally over HotpotQA, 2WikiMultiHopQA and
STaRK-PRIME train questions, for the embedder that ships with Clew.
"""


@dataclass(frozen=True, slots=True)
class QuestionSimilarity:
    """Similarity of a claim to its question: in meaning, of the document and of the name, and in words."""

    document_cosine: float
    name_cosine: float
    coverage: float

    def probability(self) -> float:
        """Return the probability that the candidate is the answer."""
        logit = CONSTANT + DOCUMENT_COSINE * self.document_cosine
        logit += NAME_COSINE * self.name_cosine + COVERAGE * self.coverage
        return 1 / (1 + math.exp(-logit))


@dataclass(frozen=True)
class FusedScorer:
    """Scores without a model: by the similarity of document and name, and the share of the question's words covered.

    Rare words have higher weights. The frequency of a word comes from the claims of the same question.
    """

    embedder: Embedder

    def score(self, claims: Sequence[Claim]) -> list[float | None]:
        """Return the probability of each claim by its similarity."""
        return [like.probability() for like in self.compare(claims)]

    def compare(self, claims: Sequence[Claim]) -> list[QuestionSimilarity]:
        """Return the similarities behind the scores. All texts are embedded as one batch."""
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
            QuestionSimilarity(float(document), float(name), coverage)
            for document, name, coverage in zip(*cosines, _coverages(claims, texts), strict=True)
        ]


def _text(claim: Claim) -> str:
    return f"{claim.candidate}. {claim.document}" if claim.document else claim.candidate


def _coverages(claims: Sequence[Claim], texts: Sequence[str]) -> list[float]:
    """Return for each claim the weighted share of the question's terms that occur in its text."""
    held = [set(terms(text)) for text in texts]
    asked = {claim.question: frozenset(terms(claim.question)) for claim in claims}
    beside: dict[str, Counter[str]] = {question: Counter() for question in asked}
    count = Counter(claim.question for claim in claims)
    for claim, found in zip(claims, held, strict=True):
        beside[claim.question].update(found & asked[claim.question])
    coverages = []
    for claim, found in zip(claims, held, strict=True):
        frequency, total = beside[claim.question], count[claim.question]
        weight = {term: math.log(1 + (total + 1) / (frequency[term] + 1)) for term in asked[claim.question]}
        whole = sum(weight[term] for term in sorted(weight))
        coverages.append(sum(weight[term] for term in sorted(weight) if term in found) / whole if whole else 0.0)
    return coverages
