"""Choose among options by a model, with pairs in both orders and lists in chunks, or by similarity to the question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import StrictInt

from clew.core import trace
from clew.core.errors import ReplyError
from clew.core.roles import Choice, Chosen, Claim, Scorer
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Outcome, Prompt, TypedReply, ask, object_schema, read_json
from clew.models.tokens import chunk_by_tokens, cut_end

PAIR = Prompt.load("clew.answering.roles.prompts", "choose_pair")
LIST = Prompt.load("clew.answering.roles.prompts", "choose_list")
PAIR_SCHEMA = object_schema({"choice": {"type": "string", "enum": ["A", "B"]}})
MOST_OPTIONS = 40
"""Maximum number of options in one prompt. Longer lists are split, and the winners of the chunks compete again."""
OPTION_TOKENS = 200
"""Maximum length of an option, in tokens."""


class _Pair(TypedReply):
    choice: Literal["A", "B"]


class _List(TypedReply):
    best: list[StrictInt]


def read_pair(completion: Completion) -> float:
    """Return the probability of A: from the logprobs of the letter if there are any, otherwise 1 or 0."""
    chosen = read_json(completion.text, _Pair).choice
    for alternatives in reversed(completion.logprobs):
        letters = {"A": 0.0, "B": 0.0}
        for token, logprob in alternatives.items():
            letter = token.strip(' "{}')
            if letter in letters:
                letters[letter] += math.exp(min(0.0, logprob))
        if letters["A"] + letters["B"] > 0.5:  # this token is the choice, not the start of a word
            return letters["A"] / (letters["A"] + letters["B"])
    return 1.0 if chosen == "A" else 0.0


def read_list(completion: Completion, options: int) -> tuple[int, ...]:
    """Return the indices of the chosen options without duplicates. Raise ReplyError if a number is out of range."""
    numbers = read_json(completion.text, _List).best
    wrong = [number for number in numbers if not 1 <= number <= options]
    if wrong:
        raise ReplyError(f"there is no option {wrong[0]}; the options are 1 to {options}")
    if not numbers:
        raise ReplyError("no option was chosen")
    return tuple(dict.fromkeys(number - 1 for number in numbers))


@dataclass(frozen=True)
class ModelChooser:
    """Asks a model. It sees two options in both orders, because small models prefer a position to an option."""

    model: LanguageModel
    both_orders: bool = True
    most_options: int = MOST_OPTIONS

    def choose(self, choices: Sequence[Choice]) -> list[Chosen]:
        """Return one outcome per choice. The model gets all pairs as one batch, and all lists as another batch."""
        trivial = list(map(_trivial, choices))
        left = [place for place, outcome in enumerate(trivial) if outcome is None]
        pairs = [place for place in left if len(choices[place].options) == 2]
        lists = [place for place in left if len(choices[place].options) > 2]
        found = self._pairs([choices[place] for place in pairs]) + self._lists([choices[place] for place in lists])
        settled = dict(zip(pairs + lists, found, strict=True))
        return [outcome or settled[place] for place, outcome in enumerate(trivial)]

    def _pairs(self, choices: Sequence[Choice]) -> list[Chosen]:
        orders = [(0, 1), (1, 0)] if self.both_orders else [(0, 1)]
        asks = [self._pair(choice, order) for choice in choices for order in orders]
        outcomes = ask(self.model, asks, role="choose")
        step = len(orders)
        return [
            self._settle_pair(choice, outcomes[place * step : place * step + step])
            for place, choice in enumerate(choices)
        ]

    def _pair(self, choice: Choice, order: tuple[int, int]) -> Ask[float]:
        first, second = (cut_end(choice.options[place], OPTION_TOKENS) for place in order)
        filled = PAIR.fill(question=choice.question, given=_given(choice), first=first, second=second, kind=choice.kind)
        return Ask(filled, read_pair, schema=PAIR_SCHEMA, max_tokens=24, top_logprobs=5)

    def _settle_pair(self, choice: Choice, outcomes: Sequence[Outcome[float]]) -> Chosen:
        """Average over both orders. At an even split the first option stays first."""
        for_first = [
            outcome.value if place == 0 else 1 - outcome.value
            for place, outcome in enumerate(outcomes)
            if outcome.value is not None
        ]
        if not for_first:
            return _in_given_order(choice, outcomes[0].problem or "no reply")
        mean = sum(for_first) / len(for_first)
        order = (0, 1) if mean >= 0.5 else (1, 0)
        return Chosen(order[: choice.keep], sure=max(mean, 1 - mean))

    def _lists(self, choices: Sequence[Choice]) -> list[Chosen]:
        """Choose within the chunks of each list. If there are several chunks, then choose among their winners."""
        if not choices:
            return []
        chunked = [self._chunks(choice) for choice in choices]
        asks = [self._list(choice, chunk) for choice, chunks in zip(choices, chunked, strict=True) for chunk in chunks]
        outcomes = iter(ask(self.model, asks, role="choose"))
        chosen: list[Chosen] = []
        again: dict[int, tuple[Choice, tuple[int, ...]]] = {}
        for place, (choice, chunks) in enumerate(zip(choices, chunked, strict=True)):
            parts = [self._settle_list(choice, chunk, next(outcomes)) for chunk in chunks]
            kept = tuple(position for part in parts for position in part.kept)
            problem = next((part.problem for part in parts if part.problem), None)
            chosen.append(Chosen(kept[: choice.keep], problem=problem))
            if len(chunks) > 1:
                again[place] = (replace(choice, options=tuple(choice.options[position] for position in kept)), kept)
        for place, final in zip(again, self.choose([choice for choice, _ in again.values()]), strict=True):
            kept = again[place][1]
            problem = chosen[place].problem or final.problem
            chosen[place] = Chosen(tuple(kept[position] for position in final.kept), final.sure, problem=problem)
        return chosen

    def _chunks(self, choice: Choice) -> list[Sequence[int]]:
        room = self.model.context_tokens // 2
        # A chunk must be larger than the number of options to select. Otherwise chunking would not end.
        most = max(self.most_options, 2 * choice.keep)
        texts = [cut_end(option, OPTION_TOKENS) for option in choice.options]
        chunks = list(chunk_by_tokens(range(len(texts)), room, lambda place: texts[place], most=most))
        return chunks if all(len(chunk) > choice.keep for chunk in chunks) else [range(len(texts))]

    def _list(self, choice: Choice, chunk: Sequence[int]) -> Ask[tuple[int, ...]]:
        shown = "\n".join(
            f"{number}. {cut_end(choice.options[place], OPTION_TOKENS)}" for number, place in enumerate(chunk, 1)
        )
        filled = LIST.fill(
            question=choice.question, given=_given(choice), options=shown, kind=choice.kind, keep=choice.keep
        )
        return Ask(
            filled,
            lambda completion: read_list(completion, len(chunk)),
            schema=_list_schema(len(chunk)),
            max_tokens=200,
        )

    def _settle_list(self, choice: Choice, chunk: Sequence[int], outcome: Outcome[tuple[int, ...]]) -> Chosen:
        """Return the chosen options. If there are too few, append the remaining options in the given order."""
        if outcome.value is None:
            among = replace(choice, options=tuple(choice.options[place] for place in chunk))
            kept = _in_given_order(among, outcome.problem or "no reply")
            return replace(kept, kept=tuple(chunk[place] for place in kept.kept))
        named = [chunk[place] for place in outcome.value]
        rest = [place for place in chunk if place not in named]
        return Chosen(tuple((named + rest)[: choice.keep]))


def _in_given_order(choice: Choice, problem: str) -> Chosen:
    """Return the first options if there is no usable reply. The given order is a sensible default."""
    trace.fallback("choose", problem, "the given order is used")
    return Chosen(tuple(range(min(choice.keep, len(choice.options)))), sure=0.5, problem=problem)


@dataclass(frozen=True)
class ScoredChooser:
    """Chooses without a model: the options with the highest scores. Ties stay in the given order."""

    scorer: Scorer

    def choose(self, choices: Sequence[Choice]) -> list[Chosen]:
        """Score all options of all choices as one batch."""
        claims = [
            Claim(choice.question, f"{choice.given} {option}".strip())
            for choice in choices
            for option in choice.options
        ]
        scores = iter(self.scorer.score(claims))
        chosen = []
        for choice in choices:
            values = [next(scores) or 0.0 for _ in choice.options]
            order = sorted(range(len(values)), key=lambda place: (-values[place], place))
            chosen.append(Chosen(tuple(order[: max(0, choice.keep)]), sure=_margin(values, order)))
        return chosen


def _margin(values: Sequence[float], order: Sequence[int]) -> float:
    """Return the best score divided by the sum of the two best scores: 0.5 if they are equal."""
    if len(order) < 2:
        return 1.0
    best, second = values[order[0]], values[order[1]]
    return best / (best + second) if best + second > 0 else 0.5


def _trivial(choice: Choice) -> Chosen | None:
    """Return the outcome if there is at most one option, or if `keep` is not positive. Otherwise return None."""
    if choice.keep <= 0 or not choice.options:
        return Chosen(())
    return Chosen((0,)) if len(choice.options) == 1 else None


def _given(choice: Choice) -> str:
    return f"\nGiven: {choice.given}\n" if choice.given else ""


def _list_schema(options: int) -> dict[str, Any]:
    numbers = {"type": "integer", "enum": list(range(1, options + 1))}
    return object_schema({"best": {"type": "array", "items": numbers}})
