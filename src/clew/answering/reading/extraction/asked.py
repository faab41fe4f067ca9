"""Analyse the words of a question: the kind of answer, the noun it asks for, and the words about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import dropwhile
from typing import Literal

from clew.store.index.tokens import stop_words, terms, tokenise

Kind = Literal["person", "place", "origin", "date", "year", "number", "yes or no", "thing", "anything"]

SAME_MEANING = (
    "born birth birthplace birthday birthdate",
    "die died dies dead death killed",
    "wife husband spouse married marry marries marriage widow",
    "father mother parent parents son daughter child children",
    "directed director directs directing",
    "wrote writer writes written write author authored penned screenwriter novelist",
    "composed composer composes music score",
    "performed performer performs sang singer song recorded artist",
    "founded founder founds established formed formation founding",
    "located location situated lies lie based headquarters headquartered",
    "studied study studies educated attended graduated alma",
    "won win winner winning awarded award received",
    "played plays player starred starring stars star acted actor actress portrayed",
    "released release premiered published came aired",
    "people population inhabitants residents populated",
    "brother sister sibling siblings",
    "buried burial cemetery interred",
    "created creator developed developer invented inventor",
)
"""Groups of words with the same meaning in questions and answers."""
_KIND_OF_NOUN: tuple[tuple[Kind, str], ...] = (
    ("year", "year"),
    ("date", "date month day decade century birthday birthdate"),
    ("place", "place city town village country state county region province district location birthplace island"),
    ("place", "area continent capital municipality neighborhood"),
    ("origin", "nationality"),
    ("number", "number population percentage age amount height length distance"),
    ("person", "person man woman wife husband spouse mother father son daughter child sibling brother sister aunt"),
    ("person", "uncle grandfather grandmother stepmother stepfather stepchild actor actress director singer player"),
    ("person", "author writer composer performer producer founder politician musician president king queen artist"),
    ("person", "footballer driver character leader owner star guitarist coach rapper comedian poet novelist"),
)
KIND_OF_NOUN = {noun: kind for kind, nouns in _KIND_OF_NOUN for noun in nouns.split()}
_ASKING = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^\W*(?:(?:in|on|at|by|for|from|of|to|under|with) )?(what|which|who|whom|whose|where|when|how)\b",
        r"\b(what|how (?=many|much|old|long|far|large|tall|high|big|often))\b(?!.*\bwhat\b)",
        r"\b(who|whom|where|when|which)\b\W*$",
        r"\b(which) (?!(?:is|was|are|were|has|have|had|the|a|an|also|he|she|it|they|in)\b)(?!.*\bwhich\b)",
        r"\b(what|which|who|whom|whose|where|when|how)\b",
    )
)
"""Positions of the question word, the most reliable first. Elsewhere such words start relative clauses."""
_YES_OR_NO = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"how (?:many|much|old|long|far|large|tall|high|big|often)\b", re.IGNORECASE)
_PHRASE_ENDS = frozenset(
    {"of", "in", "on", "at", "for", "from", "by", "to", "with", "and", "or", "that", "who", "which", "whose", "where"}
)
_BEFORE_NOUNS = frozenset({"is", "was", "are", "were", "the", "a", "an", "name", "of", "kind", "type", "other"})
FOCUS = 6
"""Maximum number of content words near the question word that describe the answer."""


@dataclass(frozen=True)
class Asked:
    """A question and its parts."""

    text: str

    @cached_property
    def terms(self) -> frozenset[str]:
        """Terms of the question. Words of the same meaning share one term."""
        return meanings(self.text)

    @cached_property
    def _asking(self) -> re.Match[str] | None:
        return next((found for pattern in _ASKING if (found := pattern.search(self.text))), None)

    @property
    def _word(self) -> str:
        return "" if self._asking is None else self._asking[1].lower().strip()

    @cached_property
    def focus(self) -> frozenset[str]:
        """Terms near the question word: after it, or before it if it ends the question."""
        if self._asking is None:
            return self.terms
        after = [token.text for token in tokenise(self.text[self._asking.end(1) :])]
        before = [token.text for token in tokenise(self.text[: self._asking.start(1)])]
        near = after[: 2 * FOCUS] if len(after) > 2 else before[-FOCUS:] + after
        content = [word for word in near if word not in stop_words()][:FOCUS]
        return meanings(" ".join(content))

    @cached_property
    def noun(self) -> str | None:
        """Noun for the answer: "city" in "in which city", "mother" in "who is the mother of"."""
        if self._asking is None:
            return None
        words = [token.text for token in tokenise(self.text[self._asking.end(1) :])][:9]
        if self._word not in ("what", "which") and words[:2] not in (["is", "the"], ["was", "the"]):
            return None
        phrase: list[str] = []
        for word in dropwhile(_BEFORE_NOUNS.__contains__, words):
            if phrase and (word in _PHRASE_ENDS or word in stop_words()):
                break
            phrase.append(word)
        nouns = [word for word in phrase if word in KIND_OF_NOUN]
        return nouns[0] if nouns else (phrase[-1] if phrase and len(phrase) <= 3 else phrase[0] if phrase else None)

    @cached_property
    def kind(self) -> Kind:
        """Kind of answer that the question asks for."""
        word = self._word
        sure = word in ("what", "how") or (word == "which" and self.noun in KIND_OF_NOUN)
        if _YES_OR_NO.search(self.text) and not sure:
            return "yes or no"
        if self._asking is None:
            return "anything"
        if word == "when":
            return "date"
        if word == "where":
            return "place"
        if word == "how":
            return "number" if _NUMBER.match(self.text, self._asking.start(1)) else "anything"
        if self.noun in KIND_OF_NOUN:
            kind = KIND_OF_NOUN[self.noun or ""]
            return "origin" if self.noun == "country" and self.text.rstrip(" ?").endswith("from") else kind
        if word in ("who", "whom", "whose"):
            return "person"
        return "thing"

    def about(self, *words: str) -> bool:
        """Return whether the question uses one of these words, or a word of the same meaning."""
        return bool(self.terms & meanings(" ".join(words)))


def meanings(text: str) -> frozenset[str]:
    """Return the terms of a text. Words of the same meaning share one term."""
    return frozenset(as_meanings(terms(text)))


def as_meanings(found: Iterable[str]) -> list[str]:
    """Replace words of the same meaning by one term."""
    return [_MEANING.get(term, term) for term in found]


_MEANING = {term: f"={group.split()[0]}" for group in SAME_MEANING for term in terms(group)}
