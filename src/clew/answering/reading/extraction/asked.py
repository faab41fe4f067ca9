"""What a question asks for, by its words: the kind of answer, the noun it asks with, the words that say what about."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
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
"""Words that ask for and tell of one thing."""
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
"""Where the asking word stands, surest first: elsewhere such words begin relative clauses."""
_YES_OR_NO = re.compile(
    r"^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b", re.IGNORECASE
)
_NUMBER = re.compile(r"how (?:many|much|old|long|far|large|tall|high|big|often)\b", re.IGNORECASE)
_PHRASE_ENDS = frozenset(
    {"of", "in", "on", "at", "for", "from", "by", "to", "with", "and", "or", "that", "who", "which", "whose", "where"}
)
_BEFORE_NOUNS = frozenset({"is", "was", "are", "were", "the", "a", "an", "name", "of", "kind", "type", "other"})
FOCUS = 6
"""Words after the asking word that say what is wanted."""


@dataclass(frozen=True)
class Asked:
    """A question taken apart."""

    text: str

    @cached_property
    def terms(self) -> frozenset[str]:
        """What it says, words of one meaning as one."""
        return meanings(self.text)

    @cached_property
    def _asking(self) -> re.Match[str] | None:
        return next((found for pattern in _ASKING if (found := pattern.search(self.text))), None)

    @property
    def _word(self) -> str:
        return "" if self._asking is None else self._asking[1].lower().strip()

    @cached_property
    def focus(self) -> frozenset[str]:
        """The meanings around the asking word: after it, or before it where it ends the question."""
        if self._asking is None:
            return self.terms
        after = [token.text for token in tokenise(self.text[self._asking.end(1) :])]
        before = [token.text for token in tokenise(self.text[: self._asking.start(1)])]
        near = after[: 2 * FOCUS] if len(after) > 2 else before[-FOCUS:] + after
        content = [word for word in near if word not in stop_words()][:FOCUS]
        return meanings(" ".join(content))

    @cached_property
    def noun(self) -> str | None:
        """The noun that names what is wanted: "city" in "in which city", "mother" in "who is the mother of"."""
        if self._asking is None:
            return None
        words = [token.text for token in tokenise(self.text[self._asking.end(1) :])][:9]
        if self._word not in ("what", "which") and words[:2] not in (["is", "the"], ["was", "the"]):
            return None
        while words and words[0] in _BEFORE_NOUNS:
            words = words[1:]
        phrase: list[str] = []
        for word in words:
            if phrase and (word in _PHRASE_ENDS or word in stop_words()):
                break
            phrase.append(word)
        nouns = [word for word in phrase if word in KIND_OF_NOUN]
        return nouns[0] if nouns else (phrase[-1] if phrase and len(phrase) <= 3 else phrase[0] if phrase else None)

    @cached_property
    def kind(self) -> Kind:
        """What kind of answer it wants."""
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
        """Whether it uses one of these words or another of the same meaning."""
        return bool(self.terms & meanings(" ".join(words)))


def meanings(text: str) -> frozenset[str]:
    """The terms of a text; words of the same meaning become one term."""
    return frozenset(as_meanings(terms(text)))


def as_meanings(found: Iterable[str]) -> list[str]:
    """Terms with one for all words of the same meaning."""
    return [_MEANING.get(term, term) for term in found]


_MEANING = {term: f"={group.split()[0]}" for group in SAME_MEANING for term in terms(group)}
