"""Write search texts and candidate answers with a model, or use the uncovered part of the question."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from clew.core import trace
from clew.core.errors import InputError, ReplyError
from clew.core.proper_names import proper_names
from clew.core.roles import Draft, Written
from clew.models.protocol import Beams, Completion, LanguageModel
from clew.models.structured import Ask, Outcome, Prompt, TypedReply, ask, object_schema, read_json
from clew.models.tokens import count_tokens, cut_to_question
from clew.store.index.tokens import terms, words_outside

NEXT = Prompt.load("clew.answering.roles.prompts", "next_evidence")
ANSWERS = Prompt.load("clew.answering.roles.prompts", "answers")
BRIEFLY = Prompt.load("clew.answering.roles.prompts", "answer_briefly")
LONGEST_EVIDENCE = 1000
"""Maximum length of a search text, in characters."""
LONGEST_ANSWER = 200
"""Maximum characters of a generated answer. Longer ones are dropped."""


class _Next(TypedReply):
    enough: bool = False
    next: str = ""


class _Answers(TypedReply):
    answers: list[str | int | float]


NEXT_SCHEMA = object_schema({"enough": {"type": "boolean"}, "next": {"type": "string"}})
ANSWERS_SCHEMA = object_schema({"answers": {"type": "array", "items": {"type": "string"}}})


def read_next(completion: Completion) -> tuple[str, ...]:
    """Return the evidence to search for. Empty if the model reports that there is enough."""
    reply = read_json(completion.text, _Next)
    text = " ".join(reply.next.split())[:LONGEST_EVIDENCE]
    if not text and not reply.enough:
        raise ReplyError('"next" is empty although "enough" is false')
    return () if reply.enough else (text,)


def asking_for_evidence(draft: Draft, room: int) -> Ask[tuple[str, ...]]:
    """Create a request for the evidence that a draft lacks. `room` limits the known evidence, in tokens."""
    shown = draft.evidence
    if sum(map(count_tokens, shown)) > room:
        shown = tuple(cut_to_question(text, draft.question, room // len(shown)) for text in shown)
    listed = "\n".join(f"- {text}" for text in shown) or "(none)"
    return Ask(NEXT.fill(question=draft.question, evidence=listed), read_next, schema=NEXT_SCHEMA, max_tokens=160)


def next_reply(text: str) -> str:
    """Return the expected reply of a model: the evidence to search for, or for an empty text that there is enough."""
    return json.dumps({"enough": not text, "next": text}, ensure_ascii=False)


def read_answers(completion: Completion, count: int) -> tuple[str, ...]:
    """Return at most `count` different answers in order."""
    words = (" ".join(str(answer).split()) for answer in read_json(completion.text, _Answers).answers)
    found = different([word for word in words if 0 < len(word) <= LONGEST_ANSWER], count)
    if not found:
        raise ReplyError("no answer was given")
    return found


def read_brief(completion: Completion) -> tuple[str, ...]:
    """Return each reply as an answer: its first line, without quotes and the final full stop."""
    lines = (text.strip().split("\n")[0] for text in (completion.text, *completion.others))
    answers = tuple(" ".join(line.strip(" \"'“”.").split()) for line in lines)
    kept = tuple(answer for answer in answers if 0 < len(answer) <= LONGEST_ANSWER)
    if not kept:
        raise ReplyError("no answer was given")
    return kept


def different(answers: Sequence[str], count: int, *, by_frequency: bool = False) -> tuple[str, ...]:
    """Return at most `count` different answers, in their order or by frequency."""
    times = Counter(map(str.casefold, answers))
    first = {answer.casefold(): answer for answer in reversed(answers)}
    ordered = [answer for answer, _ in times.most_common()] if by_frequency else list(times)
    return tuple(first[answer] for answer in ordered[:count])


@dataclass(frozen=True)
class UncoveredPart:
    """Writes without a model: the question's words missing from the evidence, and new names from the evidence.

    The next passage is about a name in the last passage. With these names, 71 % of next passages are found first,
    against 21 % with only the question (120 bridge questions of HotpotQA and 2Wiki). Candidate answers need a model.
    """

    names: int = 6
    """Maximum number of names to take from the last evidence that are not in the question."""

    def next_evidence(self, drafts: Sequence[Draft]) -> list[Written]:
        """Return the uncovered words in the order of the question, then the names. Empty if all words are covered."""
        return [self._uncovered(draft) for draft in drafts]

    def _uncovered(self, draft: Draft) -> Written:
        covered = {term for text in draft.evidence for term in terms(text)}
        missing = words_outside(draft.question, covered)
        names = self._new_names(draft) if missing else []
        return Written((" ".join(dict.fromkeys((*missing, *names))),) if missing else ())

    def _new_names(self, draft: Draft) -> list[str]:
        asked = set(terms(draft.question))
        names = proper_names(draft.evidence[-1]) if draft.evidence else ()
        return list(dict.fromkeys(name.text for name in names if not asked.issuperset(terms(name.text))))[: self.names]


Generation = Literal["list", "samples", "beams"]
"""Way to generate many answers: listed in one reply, sampled separately, or by diverse beam search."""
TEMPERATURE = 0.8
"""Temperature of separate samples. At 0 all would be the same answer."""
LONGEST_BRIEFLY = 24
"""Maximum tokens of an answer that is generated separately."""
PENALTY, BEAMS_IN_A_GROUP = 0.1, 10
"""Values of the paper: 200 beams in 20 groups, penalty 0.1 (Salnikov et al. 2025)."""


@dataclass(frozen=True)
class ModelWriter:
    """Asks a model. If it fails, uses the uncovered part of the question."""

    model: LanguageModel
    generation: Generation = "list"

    def __post_init__(self) -> None:
        """Reject beams if the model does not support them."""
        if self.generation == "beams" and not self.model.capabilities.beams:
            raise InputError(
                f"{self.model.name} cannot search by beams: use a model in this process (hf:FOLDER), or samples"
            )

    def next_evidence(self, drafts: Sequence[Draft]) -> list[Written]:
        """Return one sentence to search with for each draft."""
        asks = [asking_for_evidence(draft, self.model.context_tokens // 2) for draft in drafts]
        written = []
        for draft, outcome in zip(drafts, ask(self.model, asks, role="write"), strict=True):
            if outcome.value is not None:
                written.append(Written(outcome.value))
                continue
            trace.fallback("write", outcome.problem or "no reply", "the uncovered part of the question")
            [instead] = UncoveredPart().next_evidence([draft])
            written.append(replace(instead, problem=outcome.problem))
        return written

    def answers(self, questions: Sequence[str], count: int) -> list[Written]:
        """Return different answers, likeliest first. There may be fewer than `count`."""
        asks = [self._ask_answers(question, count) for question in questions]
        outcomes = ask(self.model, asks, role="write")
        if self.generation == "samples":
            outcomes = self._further_samples(questions, outcomes, count)
        written = []
        for outcome in outcomes:
            texts = different(outcome.value or (), count, by_frequency=self.generation == "samples")
            problem = None if texts else outcome.problem or "no answer was given"
            if problem is not None:
                trace.fallback("write", problem, "no candidate answers")
            written.append(Written(texts, problem))
        return written

    def _ask_answers(self, question: str, count: int, seed: int = 0) -> Ask[tuple[str, ...]]:
        if self.generation == "list":
            read = partial(read_answers, count=count)
            tokens = min(2000, 40 + 16 * count)
            filled = ANSWERS.fill(question=question, count=count)
            return Ask(filled, read, schema=ANSWERS_SCHEMA, max_tokens=tokens, seed=seed)
        brief = BRIEFLY.fill(question=question)
        if self.generation == "samples":
            return Ask(brief, read_brief, max_tokens=LONGEST_BRIEFLY, temperature=TEMPERATURE, seed=seed, n=count)
        beams = Beams(count, max(1, count // BEAMS_IN_A_GROUP), PENALTY)
        return Ask(brief, read_brief, max_tokens=LONGEST_BRIEFLY, n=count, beams=beams)

    def _further_samples(
        self, questions: Sequence[str], outcomes: Sequence[Outcome[tuple[str, ...]]], count: int
    ) -> list[Outcome[tuple[str, ...]]]:
        """Request the remaining samples one by one from servers that ignore `n`."""
        alone = [place for place, one in enumerate(outcomes) if one.value is not None and len(one.value) == 1 < count]
        asks = [
            replace(self._ask_answers(questions[place], 1, seed), n=1) for place in alone for seed in range(1, count)
        ]
        more = ask(self.model, asks, role="write")
        merged = list(outcomes)
        for number, place in enumerate(alone):
            own = more[number * (count - 1) : (number + 1) * (count - 1)]
            drawn = [text for outcome in own for text in outcome.value or ()]
            merged[place] = replace(merged[place], value=(*(merged[place].value or ()), *drawn))
        return merged
