"""Writing what to look for next, and answers to choose from: by a model, or the uncovered part of the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.roles import Draft, Writer, Written
from clew.index.tokens import stop_words, terms, tokenise
from clew.models.prompts import Prompt
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, ask, read_json
from clew.models.tokens import count_tokens, cut_to_question
from clew.reading.language.proper_names import proper_names

NEXT = Prompt.load("clew.roles.prompts", "next_evidence")
ANSWERS = Prompt.load("clew.roles.prompts", "answers")
LONGEST_EVIDENCE = 1000
"""Characters of a written evidence that are kept."""
LONGEST_ANSWER = 200


class _Next(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    enough: bool = False
    next: str = ""


class _Answers(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    answers: list[str | int | float]


NEXT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"enough": {"type": "boolean"}, "next": {"type": "string"}},
    "required": ["enough", "next"],
    "additionalProperties": False,
}
ANSWERS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answers": {"type": "array", "items": {"type": "string"}}},
    "required": ["answers"],
    "additionalProperties": False,
}


def read_next(completion: Completion) -> tuple[str, ...]:
    """The evidence to look for; none where the model says that there is enough."""
    reply = read_json(completion.text, _Next)
    text = " ".join(reply.next.split())[:LONGEST_EVIDENCE]
    if not text and not reply.enough:
        raise ReplyError('"next" is empty although "enough" is false')
    return () if reply.enough else (text,)


def read_answers(completion: Completion, count: int) -> tuple[str, ...]:
    """Different answers in order, at most `count`."""
    words = (" ".join(str(answer).split()) for answer in read_json(completion.text, _Answers).answers)
    different = {answer.casefold(): answer for answer in reversed([w for w in words if 0 < len(w) <= LONGEST_ANSWER])}
    if not different:
        raise ReplyError("no answer was given")
    return tuple(reversed(different.values()))[:count]


@dataclass(frozen=True)
class UncoveredPart:
    """Writes without a model: the question's words that the evidence does not hold, and the names it brings in.

    The next passage is about somebody or something the last one named: with these names, 71 % of next passages are
    found first, against 21 % by the question alone (120 bridge questions of HotpotQA and 2Wiki).
    Candidate answers cannot be had this way.
    """

    rarity: Callable[[str], float] | None = None
    """A term's weight, such as an index's inverse document frequency."""
    common: float = 0.2
    """Terms with less than this share of the rarest one's weight are left out."""
    names: int = 6
    """So many names of the last evidence that the question does not hold."""

    def next_evidence(self, drafts: Sequence[Draft]) -> list[Written]:
        """The uncovered words in the order of the question, then the names; nothing where no word is uncovered."""
        return [self._uncovered(draft) for draft in drafts]

    def answers(self, questions: Sequence[str], count: int) -> list[Written]:  # noqa: ARG002 - the protocol's
        """None."""
        return [Written((), "candidate answers need a language model")] * len(questions)

    def _uncovered(self, draft: Draft) -> Written:
        covered = {term for text in draft.evidence for term in terms(text)}
        missing: list[tuple[str, float]] = []
        for token in tokenise(draft.question):
            stems = terms(token.text)
            if token.text in stop_words() or not stems or stems[0] in covered:
                continue
            weight = 1.0 if self.rarity is None else self.rarity(stems[0])
            missing.append((draft.question[token.start : token.end], weight))
        rarest = max((weight for _, weight in missing), default=0.0)
        kept = [word for word, weight in missing if weight >= self.common * rarest]
        names = self._new_names(draft) if kept else []
        return Written((" ".join(dict.fromkeys((*kept, *names))),) if kept else ())

    def _new_names(self, draft: Draft) -> list[str]:
        asked = set(terms(draft.question))
        names = proper_names(draft.evidence[-1]) if draft.evidence else ()
        return list(dict.fromkeys(name.text for name in names if not asked.issuperset(terms(name.text))))[: self.names]


@dataclass(frozen=True)
class ModelWriter:
    """Asks a model; where it fails, the uncovered part of the question stands in."""

    model: LanguageModel
    samples: int = 0
    """Further single answers, drawn at temperature 0.8, after the list the model gives when asked for many."""
    fallback: Writer = field(default_factory=UncoveredPart)

    def next_evidence(self, drafts: Sequence[Draft]) -> list[Written]:
        """One sentence to search with for each draft."""
        asks = [
            Ask(
                NEXT.fill(question=draft.question, evidence=self._shown(draft)),
                read_next,
                schema=NEXT_SCHEMA,
                max_tokens=160,
            )
            for draft in drafts
        ]
        written = []
        for draft, outcome in zip(drafts, ask(self.model, asks, role="write"), strict=True):
            if outcome.value is not None:
                written.append(Written(outcome.value))
                continue
            trace.fallback("write", outcome.problem or "no reply", "the uncovered part of the question")
            [instead] = self.fallback.next_evidence([draft])
            written.append(replace(instead, problem=outcome.problem))
        return written

    def answers(self, questions: Sequence[str], count: int) -> list[Written]:
        """The model's list first, then what further samples add; fewer than `count` where it knows no more."""
        asks = [
            Ask(
                ANSWERS.fill(question=question, count=wanted),
                lambda completion: read_answers(completion, count),
                schema=ANSWERS_SCHEMA,
                max_tokens=min(2000, 40 + 16 * wanted),
                temperature=temperature,
                seed=seed,
            )
            for question in questions
            for seed, (wanted, temperature) in enumerate([(count, 0.0), *[(1, 0.8)] * self.samples])
        ]
        outcomes = ask(self.model, asks, role="write")
        step = 1 + self.samples
        written = []
        for place in range(len(questions)):
            own = outcomes[place * step : (place + 1) * step]
            merged = {text.casefold(): text for outcome in reversed(own) for text in reversed(outcome.value or ())}
            texts = tuple(reversed(merged.values()))[:count]
            problem = None if texts else own[0].problem
            if problem is not None:
                trace.fallback("write", problem, "no candidate answers")
            written.append(Written(texts, problem))
        return written

    def _shown(self, draft: Draft) -> str:
        if not draft.evidence:
            return "(none)"
        room = self.model.context_tokens // 2
        if sum(map(count_tokens, draft.evidence)) > room:
            share = room // len(draft.evidence)
            return "\n".join(f"- {cut_to_question(text, draft.question, share)}" for text in draft.evidence)
        return "\n".join(f"- {text}" for text in draft.evidence)
