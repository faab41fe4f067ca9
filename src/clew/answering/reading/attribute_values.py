"""Attribute values in a question.

Texts are mentioned verbatim or in other words ("women"), perhaps negated. Numbers are converted to the unit in which a
comparison selects some values of an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from clew.answering.queries.columns import ORDERS
from clew.answering.reading import words_file
from clew.answering.reading.mentions import meant
from clew.answering.reading.plan import NUMBERS, Plan, Requirement
from clew.answering.reading.quantities import Quantity, in_units_of
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.amounts import first_number
from clew.core.schema import words_of
from clew.store.graph.protocol import Explorable
from clew.store.index.strings import is_common
from clew.store.index.tokens import Token, stem, stop_words, tokenise

PASSED = 2
"""Maximum number of common words between a negation and the negated value."""
PERSONAL = frozenset({"sex", "gender"})
"""Attributes whose letters are abbreviations: F for female."""


@dataclass(frozen=True)
class SaidValues:
    """Values of attributes with few values, as questions over a schema may mention them."""

    vocabulary: Vocabulary
    values: Mapping[str, tuple[str, ...]]

    def of(self, tokens: Sequence[Token], outside: Sequence[int]) -> dict[tuple[int, str], bool]:
        """Return `(attribute, value)` pairs found in a question, each with whether it is negated.

        `outside` lists the tokens outside names. Numbers in a value may be missing in the question. If they occur,
        other values of the attribute are excluded.
        """
        words: dict[str, int] = {}  # "carnivores" are of the category "carnivore"
        for place in outside:
            for word in (tokens[place].text, meant().get(tokens[place].text)):
                if word:
                    words.setdefault(stem(word), place)
        found = [one for one in self._known if words.keys() >= one[2]]
        found += [
            one
            for one in self._numbered
            if words.keys() >= one[2] and words[one[1]] == min(map(words.__getitem__, one[2])) + 1
        ]
        whole = {one[0] for one in found if one[3] and words.keys() >= one[3]}
        whole |= {
            place for place, one in enumerate(self.vocabulary.attributes) if one.is_written and one.kind == "number"
        }
        texts = [token.text for token in tokens]
        return {
            (place, value): is_denied(texts[: min(map(words.__getitem__, said))])
            for place, value, said, numbers in found
            if place not in whole or (numbers and words.keys() >= numbers)
        }

    @cached_property
    def _known(self) -> list[tuple[int, str, frozenset[str], frozenset[str]]]:
        """Attributes with values beyond schema words and common words, and the words and numbers of each value."""
        schema = self.vocabulary.schema
        kinds = {word for name in schema.type_names for word in self.vocabulary.type_words(name).split()}
        found = []
        for place, attribute in enumerate(self.vocabulary.attributes):
            for value in self.values.get(attribute.name, ()):
                every = [token.text for token in tokenise(value)]
                said = [word for word in every if not word.isdecimal()]
                if len(value) > 1 or words_of(attribute.name) in PERSONAL:
                    said = [meant().get(word, word) for word in said]
                if not all(word in kinds or is_common(word) for word in said):
                    numbers = frozenset(word for word in every if word.isdecimal())
                    found.append((place, value, frozenset(map(stem, said)), numbers))
        return found

    @cached_property
    def _numbered(self) -> list[tuple[int, str, frozenset[str], frozenset[str]]]:
        """Values that are numbers written as text. They follow the attribute's name: chromosome 4."""
        return [
            (place, value, frozenset({stem(words_of(attribute.name).split()[-1]), value}), frozenset({value}))
            for place, attribute in enumerate(self.vocabulary.attributes)
            for value in self.values.get(attribute.name, ())
            if value.isdecimal()
        ]


SHORTEST_PART = 3
"""Minimum length of a word that may be a part of a value, in letters."""


@dataclass(frozen=True)
class SaidParts:
    """Words and phrases of a question that are a part of longer values: "surgery" in "right hip surgery"."""

    vocabulary: Vocabulary
    texts: Mapping[str, Sequence[str]]
    """Different values of each text attribute, in lower case."""

    def of(self, tokens: Sequence[Token], outside: Sequence[int]) -> list[tuple[int, str]]:
        """Return `(attribute, phrase)` pairs, the longest phrase of each place. `outside` lists the usable tokens."""
        usable, found, place = set(outside), list[tuple[int, str]](), 0
        while place < len(tokens):
            longest: dict[str, list[int]] = {}
            for last in range(place, len(tokens)):
                words = [one.text for one in tokens[place : last + 1]]
                owners = self._owners(" ".join(words)) if last in usable else []
                if not owners:
                    break
                if self._tells(words):
                    longest[" ".join(words)] = owners
            phrase, owners = next(reversed(longest.items()), ("", []))
            found += [(owner, phrase) for owner in owners if self._is_exact(owner, phrase)]
            place += max(1, len(phrase.split()))
        return found

    def _tells(self, words: Sequence[str]) -> bool:
        """Return whether content words are at both ends, and one word is neither common nor in the schema."""
        content = [word for word in words if word not in stop_words() and len(word) >= SHORTEST_PART]
        if not content or words[0] != content[0] or words[-1] != content[-1]:
            return False
        return any(not is_common(word) and word not in self.vocabulary.words for word in content)

    def _owners(self, phrase: str) -> list[int]:
        return [owner for owner, said in self._joined.items() if f" {phrase} " in said]

    @cached_property
    def _joined(self) -> dict[int, str]:
        """The words of all values of each attribute, with a line break between two values."""
        return {
            place: "\n".join(f" {' '.join(token.text for token in tokenise(text))} " for text in self.texts[one.name])
            for place, one in enumerate(self.vocabulary.attributes)
            if one.name in self.texts
        }

    def _is_exact(self, owner: int, phrase: str) -> bool:
        """Return whether exactly the values with these words contain the phrase as a text."""
        texts = self.texts[self.vocabulary.attributes[owner].name]
        count = sum(phrase in text for text in texts)
        return 0 < count == sum(f" {phrase} " in line for line in self._joined[owner].split("\n"))


@lru_cache(maxsize=1)
def _denials() -> frozenset[str]:
    return frozenset(words_file("denials.txt").split())


def denials(question: str) -> list[str]:
    """Return the negation words in a question."""
    return [token.text for token in tokenise(question) if token.text in _denials()]


def is_denied(before: Sequence[str]) -> bool:
    """Return whether the text after these words is negated: "not from …", "other than …".

    Skip up to PASSED common words.
    """
    for place in range(len(before) - 1, max(-1, len(before) - 2 - PASSED), -1):
        if before[place] in _denials() or before[place : place + 2] == ["other", "than"]:
            return True
        if before[place] not in stop_words() and not is_common(before[place]):
            return False
    return False


NEARLY_ALL, UNTELLING = 0.97, -2.0
"""Share of values, and score of a comparison that at least this share satisfies. Such a comparison is unlikely."""
UNMET = -1.0
"""Score of a comparison that no value satisfies, except in count and yes/no questions."""
Numbers = NDArray[np.float64]


@dataclass
class Extents:
    """Attribute values of a base, read when an attribute is first compared."""

    kb: Explorable
    vocabulary: Vocabulary
    _known: dict[int, Numbers] = field(default_factory=dict)

    def fitted(self, plan: Plan, numbers: Sequence[Quantity]) -> tuple[Plan, float]:
        """Return the plan with numbers in the units of the attributes, and a score of 0 or less."""
        groups: dict[int, list[Requirement]] = {}
        for one in plan.requirements:
            if one.attribute is not None:
                groups.setdefault(one.attribute, []).append(one)
        found = [self._fitted(place, group, numbers, plan) for place, group in groups.items()]
        fitted = {id(before): after for group, _ in found for before, after in group}
        requirements = tuple(fitted.get(id(one), one) for one in plan.requirements)
        return replace(plan, requirements=requirements), sum(cost for _, cost in found)

    def _fitted(
        self, place: int, group: Sequence[Requirement], numbers: Sequence[Quantity], plan: Plan
    ) -> tuple[list[tuple[Requirement, Requirement]], float]:
        """Convert the comparisons of one attribute to one unit.

        Choose the first unit in which some values satisfy all comparisons, but not nearly all values.
        """
        attribute = self.vocabulary.attributes[place]
        compared = [one for one in group if one.quantity is not None]
        units = [in_units_of(numbers[one.quantity], attribute.name) for one in compared if one.quantity is not None]
        options = list(zip(*units, strict=False))
        if not options or attribute.kind not in NUMBERS:
            return [(one, one) for one in group], 0.0
        shares = [self._share(place, compared, values) for values in options]
        tells = [0 < share < NEARLY_ALL for share in shares]
        chosen = options[tells.index(True) if any(tells) else 0]
        values = {id(one): value for one, value in zip(compared, chosen, strict=True)}
        fitted = [(one, replace(one, value=values.get(id(one), one.value))) for one in group]
        if any(tells):
            return fitted, 0.0
        return fitted, UNTELLING if shares[0] else 0.0 if plan.form in ("count", "exists") else UNMET

    def _share(self, place: int, compared: Sequence[Requirement], values: Sequence[float]) -> float:
        """Return the share of an attribute's values that satisfy all comparisons."""
        known = self._values(place)
        satisfied = np.ones(len(known), dtype=np.bool_)
        for one, value in zip(compared, values, strict=True):
            satisfied &= ORDERS[one.operator](known, value)
        return float(satisfied.mean()) if len(known) else 0.0

    def _values(self, place: int) -> Numbers:
        if place not in self._known:
            attribute = self.vocabulary.attributes[place]
            every = self.kb.values(self.kb.nodes(attribute.owner), attribute.name)
            if attribute.is_written:
                every = [first_number(value) for value in every if isinstance(value, str)]
            numbers = [float(x) for x in every if isinstance(x, int | float) and not np.isnan(x)]
            self._known[place] = np.array(numbers, dtype=np.float64)
        return self._known[place]
