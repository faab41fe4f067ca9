"""Requests of Think-on-Graph and Tournament on Path to a model: one prompt file each, and the readers of the replies.

An unreadable reply is requested once more. After that the given order applies, with a note in the trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

from pydantic import Field

from clew.core import trace
from clew.core.errors import ReplyError
from clew.models.protocol import Completion, LanguageModel, Message
from clew.models.structured import Ask, Prompt, TypedReply, ask, find_json, read_json
from clew.models.tokens import cut_end

_PLACE = "clew.answering.methods.paths.prompts"
TOG_RELATIONS, TOG_ENTITIES = Prompt.load(_PLACE, "tog_relations"), Prompt.load(_PLACE, "tog_entities")
ENOUGH, ANSWER = Prompt.load(_PLACE, "enough"), Prompt.load(_PLACE, "answer")
TOP_RELATIONS, TOP_ENTITIES = Prompt.load(_PLACE, "top_relations"), Prompt.load(_PLACE, "top_entities")
EXAMPLE = Prompt.load(_PLACE, "top_relations_example")
TOP_PAIR, TOP_RELEVANT = Prompt.load(_PLACE, "top_pair"), Prompt.load(_PLACE, "top_relevant")
TOP_ANSWERED, TOP_SCORES = Prompt.load(_PLACE, "top_answered"), Prompt.load(_PLACE, "top_scores")
ALONE, WITH_MEMORY = "with these triplets alone", "with these triplets and your knowledge"
LONGEST = 120
"""Maximum length of an option, in tokens."""
REASONED, LISTED = 240, 200
"""Maximum tokens of a reply with reasons, and of a list."""
T = TypeVar("T")
Mark = Literal["A", "B", "RELEVANT", "NOT RELEVANT", "ANSWERED", "NOT ANSWERED"]


class _Scores(TypedReply):
    scores: dict[str, float] = Field(min_length=1)


class _Enough(TypedReply):
    enough: bool


class _Answers(TypedReply):
    answers: list[str]


def read_scores(completion: Completion, options: int) -> list[float]:
    """Return a score for every option, 0 if it is missing. Raise ReplyError if a number is out of range."""
    scores = [0.0] * options
    for name, score in read_json(completion.text, _Scores).scores.items():
        place = int(name) - 1 if name.strip().isdecimal() else -1
        if not 0 <= place < options:
            raise ReplyError(f"there is no option {name}; the options are 1 to {options}")
        if not 0 <= score <= 1:
            raise ReplyError(f"a score is between 0 and 1, not {score}")
        scores[place] = score
    return scores


def read_indexes(completion: Completion, options: int, keep: int) -> list[int]:
    """Return the first `keep` distinct indexes of the last list in a reply. The list may be empty."""
    lists = [value for value in find_json(completion.text) if isinstance(value, list)]
    if not lists or not all(isinstance(index, int) and not isinstance(index, bool) for index in lists[-1]):
        raise ReplyError("the reply holds no list of indexes, such as [0, 2]")
    indexes: list[int] = lists[-1]
    if wrong := [index for index in indexes if not 0 <= index < options]:
        raise ReplyError(f"there is no index {wrong[0]}; the indexes are 0 to {options - 1}")
    return list(dict.fromkeys(indexes))[:keep]


def read_mark(completion: Completion, first: Mark, second: Mark) -> bool:
    """Check whether the last mark of a reply is `first`. The reasons before it may contain both marks."""
    found = re.findall(rf"\[\s*({re.escape(first)}|{re.escape(second)})\s*\]", completion.text.upper())
    if not found:
        raise ReplyError(f"the reply does not end with [{first}] or [{second}]")
    return bool(found[-1] == first)


@dataclass(frozen=True, slots=True)
class Group:
    """Candidate entities at the end of one explored path, as shown in the entity pruning of System 1."""

    explored: str
    entities: tuple[str, ...]


def rate_relations(
    model: LanguageModel, question: str, groups: Sequence[tuple[str, Sequence[str]]], keep: int
) -> list[list[float]]:
    """Think-on-Graph, relation prune: return for each entity the scores of its relations."""
    filled = [
        TOG_RELATIONS.fill(keep=keep, question=question, entity=entity, options=_numbered(relations))
        for entity, relations in groups
    ]
    return _rated(model, filled, [len(relations) for _, relations in groups])


def rate_entities(
    model: LanguageModel, question: str, groups: Sequence[tuple[str, Sequence[str]]]
) -> list[list[float]]:
    """Think-on-Graph, entity prune: return for each relation the scores of its entities."""
    filled = [
        TOG_ENTITIES.fill(question=question, relation=relation, options=_numbered(entities))
        for relation, entities in groups
    ]
    return _rated(model, filled, [len(entities) for _, entities in groups])


def rate_paths(model: LanguageModel, question: str, batches: Sequence[Sequence[str]]) -> list[list[float]]:
    """Score paths one by one, with several paths per prompt: the thesis without its tournament."""
    filled = [TOP_SCORES.fill(question=question, options=_numbered(batch)) for batch in batches]
    return _rated(model, filled, [len(batch) for batch in batches])


def pick_chains(
    model: LanguageModel, question: str, chunks: Sequence[Sequence[str]], counts: Sequence[int], few_shot: bool
) -> list[list[int]]:
    """System 1, relation pruning: return for each chunk the indexes of the selected chains."""
    example = f"\n{EXAMPLE.user}\n" if few_shot else ""
    asks = [
        Ask(
            TOP_RELATIONS.fill(keep=count, example=example, question=question, options=_indexed(chunk)),
            partial(read_indexes, options=len(chunk), keep=count),
            max_tokens=LISTED,
        )
        for chunk, count in zip(chunks, counts, strict=True)
    ]
    return _settled(model, asks, "choose", lambda place: list(range(counts[place])))


def pick_entities(model: LanguageModel, question: str, groups: Sequence[Group], keep: int) -> list[int]:
    """System 1, entity pruning: return the indexes of the selected entities, counted across all groups."""
    shown, first = [], 0
    for group in groups:
        shown.append(f"Explored Path: {group.explored}\nCandidate-Entities:\n{_indexed(group.entities, first)}")
        first += len(group.entities)
    filled = TOP_ENTITIES.fill(keep=keep, question=question, groups="\n---\n".join(shown))
    one = Ask(filled, partial(read_indexes, options=first, keep=keep), max_tokens=LISTED)
    [kept] = _settled(model, [one], "choose", lambda _: list(range(min(keep, first))))
    return kept


@dataclass(frozen=True, slots=True)
class PathPair:
    """Two candidates with their context. One of them is empty if one path is a prefix of the other."""

    given: str
    first: str
    second: str


def first_is_better(model: LanguageModel, question: str, pairs: Sequence[PathPair]) -> list[bool]:
    """System 2: compare two candidates. If one is empty, check whether the other candidate is relevant at all."""
    asks = []
    for pair in pairs:
        if pair.first and pair.second:
            filled = TOP_PAIR.fill(question=question, given=pair.given, first=pair.first, second=pair.second)
            asks.append(Ask(filled, lambda reply: read_mark(reply, "A", "B"), max_tokens=REASONED))
        else:
            filled = TOP_RELEVANT.fill(question=question, given=pair.given, candidate=pair.first or pair.second)
            asks.append(Ask(filled, _relevant(bool(pair.first)), max_tokens=REASONED))
    return _settled(model, asks, "choose", lambda _: True)


def is_answered(model: LanguageModel, question: str, candidate: str) -> bool:
    """System 2: check whether a path with its end entities answers the question."""
    filled = TOP_ANSWERED.fill(question=question, candidate=candidate)
    one = Ask(filled, lambda reply: read_mark(reply, "ANSWERED", "NOT ANSWERED"), max_tokens=REASONED)
    return _settled(model, [one], "choose", lambda _: False)[0]


def is_enough(model: LanguageModel, question: str, facts: Sequence[str], memory: bool) -> bool:
    """Think-on-Graph, reasoning: check whether the facts suffice."""
    filled = ENOUGH.fill(basis=WITH_MEMORY if memory else ALONE, question=question, facts="\n".join(facts))
    one = Ask(filled, lambda reply: read_json(reply.text, _Enough).enough, max_tokens=LISTED)
    return _settled(model, [one], "read", lambda _: False)[0]


def answers_from(model: LanguageModel, question: str, facts: Sequence[str], memory: bool) -> list[str]:
    """Return the answers that a model reads from facts. Without `memory` they may be empty."""
    otherwise = "" if memory else "If the triplets do not hold the answer, give an empty list."
    filled = ANSWER.fill(
        basis=WITH_MEMORY if memory else ALONE,
        otherwise=otherwise,
        question=question,
        facts="\n".join(facts) or "(none)",
    )
    one = Ask(filled, lambda reply: read_json(reply.text, _Answers).answers, max_tokens=LISTED)
    nothing: list[str] = []
    return _settled(model, [one], "read", lambda _: nothing)[0]


def _rated(model: LanguageModel, filled: Sequence[tuple[Message, ...]], counts: Sequence[int]) -> list[list[float]]:
    asks = [
        Ask(messages, partial(read_scores, options=count), max_tokens=LISTED)
        for messages, count in zip(filled, counts, strict=True)
    ]
    return _settled(model, asks, "score", lambda place: [0.0] * counts[place])


def _settled(model: LanguageModel, asks: Sequence[Ask[T]], role: str, instead: Callable[[int], T]) -> list[T]:
    settled = []
    for place, outcome in enumerate(ask(model, asks, role=role)):
        if outcome.value is None:
            trace.fallback(role, outcome.problem or "no reply", "the given order is used")
        settled.append(instead(place) if outcome.value is None else outcome.value)
    return settled


def _relevant(is_first: bool) -> Callable[[Completion], bool]:
    return lambda completion: read_mark(completion, "RELEVANT", "NOT RELEVANT") == is_first


def _numbered(options: Sequence[str]) -> str:
    return "\n".join(f"{number}. {cut_end(option, LONGEST)}" for number, option in enumerate(options, 1))


def _indexed(options: Sequence[str], first: int = 0) -> str:
    return "\n".join(f"[{index}] {cut_end(option, LONGEST)}" for index, option in enumerate(options, first))
