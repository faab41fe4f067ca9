"""Names in running text: longest matches without overlaps, and without everyday words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from clew.store.index.strings import SortedStrings
from clew.store.index.tokens import Token, stop_words

FEWEST_DIGITS = 3
"""Minimum number of digits of a number that counts as a name."""
NOTHING: frozenset[str] = frozenset()
WIDEST = 4
"""Maximum number of words in a misspelt name."""


@dataclass(frozen=True, slots=True)
class NameMatch:
    """Tokens first .. last that match the form of a name. `is_exact` is false if singular and plural were exchanged."""

    first: int
    last: int
    form: int
    is_exact: bool = True


@lru_cache(maxsize=1)
def common_words() -> frozenset[str]:
    """Return stop words and common words of questions, which are names only if capitalised."""
    return stop_words() | frozenset(files("clew.store.index").joinpath("common_words.txt").read_text("utf-8").split())


def is_common(word: str, ignored: frozenset[str] = NOTHING) -> bool:
    """Return whether a word or its singular is too common to be a name."""
    singular = word.removesuffix("s")
    return any(form in words for words in (common_words(), ignored) for form in (word, singular))


def find_matches(tokens: Sequence[Token], forms: SortedStrings) -> list[NameMatch]:
    """Find every run of tokens that is a form, with one binary search per token that may continue a form."""
    found = []
    for first in range(len(tokens)):
        prefix = b""
        for last in range(first, len(tokens)):
            wanted = prefix + tokens[last].text.encode()
            place = forms.place(wanted)
            is_form = place < len(forms) and forms[place] == wanted
            if is_form:
                found.append(NameMatch(first, last, place))
            else:
                other = _other_number(prefix, tokens[last].text, forms)
                if other is not None:
                    found.append(NameMatch(first, last, other, is_exact=False))
            prefix = wanted + b" "
            following = place + is_form  # a space sorts first, so continuations follow directly
            if following >= len(forms) or not forms[following].startswith(prefix):
                break
    return found


def longest(matches: Iterable[NameMatch], tokens: Sequence[Token]) -> list[NameMatch]:
    """Select non-overlapping matches in reading order, preferring longer and exact matches."""
    taken: list[NameMatch] = []
    covered: set[int] = set()

    def size(match: NameMatch) -> int:
        return tokens[match.last].end - tokens[match.first].start

    for match in sorted(matches, key=lambda match: (-size(match), not match.is_exact, match.first)):
        places = range(match.first, match.last + 1)
        if covered.isdisjoint(places):
            covered.update(places)
            taken.append(match)
    return sorted(taken, key=lambda match: match.first)


def is_telling(
    match: NameMatch, tokens: Sequence[Token], text: str, ignored: frozenset[str], is_written: Callable[[str], bool]
) -> bool:
    """Return whether a match can be meant as a name.

    A single word of the schema (`ignored`) refers to the schema. Everyday words must be capitalised inside a sentence,
    except stop words inside a longer name. A single everyday word must also be written like the alias (`is_written`): a
    film may be called "It".
    """
    run = tokens[match.first : match.last + 1]
    if is_number(match, tokens):
        return len(run[0].text) >= FEWEST_DIGITS
    dull = ignored if len(run) == 1 else NOTHING
    if not all(is_common(token.text, dull) or (len(token.text) == 1 and token.text.isascii()) for token in run):
        return True
    before = text[: run[0].start].rstrip()
    if text.upper() == text or not before or before[-1] in ".?!":
        return False
    written = [text[token.start : token.end] for token in run]
    if len(run) == 1:
        return written[0][0].isupper() and written[0] not in ("I", "A") and is_written(written[0])
    capital = [word[0].isupper() or word[0].isdecimal() for word in written]
    small = [token.text in stop_words() for token in run]
    return capital[0] and any(capital[1:]) and all(c or s for c, s in zip(capital, small, strict=True))


def is_number(match: NameMatch, tokens: Sequence[Token]) -> bool:
    """Return whether a match is one token of digits."""
    return match.first == match.last and tokens[match.first].text.isdecimal()


def numbers_beside(start: int, end: int, tokens: Sequence[Token], text: str) -> list[list[Token]]:
    """Return the number after a span, with several tokens if joined by dots, and the number before it."""
    after: list[Token] = []
    for token in tokens:
        if token.start >= end:
            gap = text[after[-1].end : token.start] if after else text[end : token.start].strip()
            if not token.text.isdecimal() or gap != ("." if after else ""):
                break
            after.append(token)
    before = [t for t in tokens if t.end <= start and t.text.isdecimal() and not text[t.end : start].strip()]
    return [run for run in (after, before[-1:]) if run]


def runs_around(place: int, tokens: Sequence[Token], is_free: Sequence[bool], ignored: frozenset[str]) -> list[range]:
    """Return runs of free tokens around a token that do not start or end with a stop word or a word of the schema."""
    runs = []
    for first in range(place, max(-1, place - WIDEST), -1):
        if not is_free[first]:
            break
        for last in range(place, min(len(tokens), first + WIDEST)):
            if not is_free[last]:
                break
            ends = (tokens[end].text for end in (first, last) if end != place)
            if not any(word in stop_words() or {word, word.removesuffix("s")} & ignored for word in ends):
                runs.append(range(first, last + 1))
    return runs


def telling_runs(tokens: Sequence[Token], ignored: frozenset[str]) -> list[range]:
    """Return runs of words with stop words only inside, and not only common words or numbers, longest first."""
    is_small = [token.text in stop_words() for token in tokens]
    is_free = [token.text.isalnum() for token in tokens]
    runs = [
        range(first, first + size)
        for size in range(WIDEST, 0, -1)
        for first in range(len(tokens) - size + 1)
        if all(is_free[first : first + size]) and not is_small[first] and not is_small[first + size - 1]
    ]
    return [
        run
        for run in runs
        if not all(
            tokens[place].text.isdecimal() or is_common(tokens[place].text, ignored if len(run) == 1 else NOTHING)
            for place in run
        )
    ]


NUMBERS = (("ies", "y"), ("es", ""), ("s", ""), ("y", "ies"), ("", "s"))
"""Endings of plurals and singulars, in both directions."""


def other_numbers(word: str) -> list[str]:
    """Return the possible singulars and plurals of a word."""
    return [
        word.removesuffix(ending) + replacement
        for ending, replacement in NUMBERS
        if word.endswith(ending) and len(word) > len(ending) + 2 and word.isalpha()
    ]


def _other_number(prefix: bytes, word: str, forms: SortedStrings) -> int | None:
    """Find the form with singular and plural of the last word exchanged."""
    places = (forms.find(prefix + other.encode()) for other in other_numbers(word))
    return next((place for place in places if place is not None), None)
