"""Detect how a question refers to the previous question, or to an earlier sentence of the same question.

Files list the opening words and the words that point back. The reader treats the resulting question like any question.

"Marfan syndrome runs in families. Which genes cause it?" asks for the genes that cause Marfan syndrome. 4StepFocus
names this as future work: "replacing pronouns with referenced objects/subjects" (Boer, Koch and Kramer 2024, §5).
Inside one sentence a pronoun may also refer to the answer, so it stays unchanged.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from clew.answering.reading import words_file
from clew.answering.reading.quantities import quantities
from clew.core.nouns import plural, singular
from clew.core.schema import words_of
from clew.store.index.protocol import Mention
from clew.store.index.tokens import stop_words, tokenise

ANYWHERE, WHOLE = r"\b(?:{})(?!\w)", r"\W*(?:{})\W*"
FORMS = {
    "ties": r"\W*(?:(?:{})\b[\s,:.!-]*)+",
    "switches": r"\W*(?:{})\b[\s,:]*",
    "complete": r"\W*(?:{})\b",
    **dict.fromkeys(("reasons", "orders", "numbers"), WHOLE),
}
"""Where a question has the words of a list. Words of other lists may be anywhere."""


@cache
def _words() -> dict[str, re.Pattern[str]]:
    """Return the regular expression of each list of words."""
    lists = tomllib.loads(words_file("follow_ups.toml"))
    joined = {name: "|".join(f"(?:{pattern})" for pattern in some) for name, some in lists.items()}
    forms = {name: FORMS.get(name, ANYWHERE).format(some) for name, some in joined.items()}
    return {name: re.compile(form, re.IGNORECASE) for name, form in forms.items()}


@dataclass(frozen=True, slots=True)
class Pointing:
    """Words that refer to earlier results."""

    start: int
    end: int
    text: str
    is_part: bool = False
    """Whether the question asks for some of these things, not for something about them."""
    is_several: bool = False
    kind: str | None = None
    """Node type named with the words: "that country"."""
    is_implied: bool = False
    """Whether the words may also not refer to earlier results: "which are the largest?"."""


def asks_for_reasons(question: str) -> bool:
    """Return whether a question asks only for the reasons of the last answer."""
    return _words()["reasons"].fullmatch(question) is not None


def pointing(question: str, kinds: Sequence[str]) -> Pointing | None:
    """Return the first words that point back. `kinds` are the node types that may occur with them."""
    words = _words()
    for kind in kinds:
        called = words_of(kind)
        noun = rf"\b(of )?{words['pointers'].pattern} (?:({re.escape(plural(called))})|{re.escape(called)})\b"
        match = re.search(noun, question, re.IGNORECASE)
        if match:
            return Pointing(match.start(), match.end(), match[0], match[1] is not None, match[2] is not None, kind)
    for way in ("parts", "several", "one", "implied"):
        if match := words[way].search(question):
            is_part, is_several, is_implied = way in ("parts", "implied"), way != "one", way == "implied"
            return Pointing(match.start(), match.end(), match[0], is_part, is_several, is_implied=is_implied)
    return None


def asked_order(question: str) -> tuple[frozenset[str], bool] | None:
    """Return the words of the sort key and whether the order is descending, or None without a requested order."""
    words = _words()
    match = words["orders"].fullmatch(question)
    if match is None:
        return None
    key = words["ascending"].sub(" ", words["descending"].sub(" ", match["key"]))
    said = frozenset(singular(token.text) for token in tokenise(key) if token.text not in stop_words())
    return said - {"order"}, words["descending"].search(match["key"]) is not None


def asks_for_number(question: str) -> bool:
    """Return whether a question asks only for the number of results."""
    return _words()["numbers"].fullmatch(question) is not None


def is_fragment(question: str) -> bool:
    """Return whether a question does not start like a complete question."""
    return _words()["complete"].match(question) is None


def untied(question: str) -> str:
    """Return the question without opening words that only connect it to the previous one: "and so, …"."""
    match = _words()["ties"].match(question)
    rest = question if match is None else question[match.end() :]
    return rest if rest.strip(" ?.!") else question


def switched(question: str) -> str | None:
    """Return the text after an opening such as "what about …", or None without such an opening."""
    match = _words()["switches"].match(question)
    rest = "" if match is None else question[match.end() :].strip(" ?.!")
    return rest or None


def telling_words(text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    """Return the words of a text outside names and numbers, without stop words."""
    taken = [*spans, *((one.start, one.end) for one in quantities(text))]
    return [
        token.text
        for token in tokenise(text)
        if token.text not in stop_words() and not any(start <= token.start < end for start, end in taken)
    ]


def replaced(text: str, pieces: Iterable[tuple[int, int, str]]) -> str:
    """Replace some spans of a text."""
    for start, end, other in sorted(pieces, reverse=True):
        text = text[:start] + other + text[end:]
    return " ".join(text.split())


_SENTENCE_END = re.compile(r"[.!?]\s+")


@cache
def _pronouns() -> tuple[re.Pattern[str], frozenset[str]]:
    lists = tomllib.loads(words_file("pronouns.toml"))
    owning = frozenset(lists["owning"])
    return re.compile(rf"\b(?:{'|'.join((*lists['pointing'], *owning))})\b", re.IGNORECASE), owning


def with_names(question: str, mentions_in: Callable[[str], Sequence[Mention]]) -> str:
    """Replace each pronoun by the last name of an earlier sentence."""
    pattern, owning = _pronouns()
    if not _SENTENCE_END.search(question) or not pattern.search(question):
        return question  # most questions have one sentence: skip the name lookup
    mentions = mentions_in(question)
    pieces = []
    for match in pattern.finditer(question):
        if any(mention.start <= match.start() < mention.end for mention in mentions):
            continue
        ends = [found.end() for found in _SENTENCE_END.finditer(question, 0, match.start())]
        before = [mention for mention in mentions if ends and mention.end <= ends[-1]]
        if before and not any(ends[-1] <= mention.start < match.start() for mention in mentions):
            name = before[-1].text
            pieces.append((match.start(), match.end(), f"{name}'s" if match[0].lower() in owning else name))
    return replaced(question, pieces) if pieces else question
