"""Model-free detection of names, sentences and given phrases in text.

Names are capitalised phrases, acronyms with expansions, and the subject of a text. Phrases are searched word by word,
longest match first, in time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_UPPER = "".join(chr(code) for code in range(0x530) if chr(code).isupper())
_WORD = rf"(?:(?:[{_UPPER}]\.)+|(?:St|Dr|Mr|Mrs|Ms|Jr|Sr|Mt|Ft)\.|[{_UPPER}][\w'’&-]*)"
_JOIN = r"(?:of|the|de|la|le|les|von|van|der|den|di|du|da|dos|das|do|del|della|des|al|el|bin|ibn|y|e|en|for|in|on|to)"
_PHRASE = rf"{_WORD}(?:[ \n](?:{_JOIN}[ \n]){{0,2}}{_WORD})*(?: \d{{1,4}}\b)?"
PHRASE = re.compile(rf"\b{_PHRASE}")
SUBJECT = re.compile(
    rf"""["“'‘]*((?:(?:The|A|An)[ ])?{_PHRASE}[\w \n:'’"”!?.-]{{0,40}}?)["”’']*\s*(?:\(|,|\b(?:is|was|are|were)\b)"""
)
ACRONYM = re.compile(rf"\(([{_UPPER}][{_UPPER}\d&-]{{1,9}})s?\)")
MIXED = re.compile(rf"(?<![\w.-])[a-z]+[{_UPPER}]\w*")
"""A name that starts in lower case, such as iPhone."""
POSSESSIVE = re.compile(r"['’]s?$")
OPENING_WORDS = """
a about after all also although among an and any are as at because before between both but by can did do does
during each first following for from had has have he her here his how however i if in into is it its many may
more most my no not of on one only or other our over she since so some several such than that the their then
there these they this those three through to two under until up upon was we were what when where which while who
whom whose why will with within you your according despite later another january february march april june july
august september october november december monday tuesday wednesday thursday friday saturday sunday
"""
OPENERS = frozenset(OPENING_WORDS.split())
"""Words that are not names: capitalised only at the start of a sentence or in a date."""
LONG_ENOUGH = 5
"""Minimum letters of a name to match inside a longer word. Shorter names, such as Git in digits, must start a word."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name and its span in a text."""

    text: str
    start: int
    end: int


def proper_names(text: str) -> Iterator[Name]:
    """Yield capitalised phrases in reading order, without leading `OPENERS`."""
    for found in PHRASE.finditer(text):
        phrase, start = found.group(), found.start()
        while True:
            first, _, rest = phrase.partition(" ") if " " in phrase else phrase.partition("\n")
            if first.lower() not in OPENERS or (first.isupper() and len(first) > 1):  # WHO is a name
                break
            start += len(phrase) - len(rest)
            phrase = rest
        phrase = POSSESSIVE.sub("", phrase.rstrip("-&"))
        if len(phrase) > 1 and not phrase[0].islower() and not phrase[0].isdigit():
            yield Name(phrase, start, start + len(phrase))


def unmentioned_names(question: str, texts: Iterable[str]) -> list[str]:
    """Return words of the question's names that no text contains. “World Bank” also matches “worldbank.csv”."""
    words = [_letters(word) for text in texts for word in text.split()]
    starts, joined = f" {' '.join(words)}", "".join(words)

    def is_said(name: str) -> bool:
        letters = _letters(name)
        return f" {letters}" in starts or (len(letters) >= LONG_ENOUGH and letters in joined)

    missing = [word for word in MIXED.findall(question) if not is_said(word)]
    for name in proper_names(question):
        parts = name.text.split()
        before = question[: name.start].rstrip(' "“‘(¿¡')
        if (not before or before[-1] in ".?!:") and parts[0][1:].islower():
            parts = parts[1:]  # capitalised as the first word
        if not is_said(name.text):
            named = [part for part in parts if part[0].isupper() and part.casefold() not in OPENERS]
            missing += [part for part in named if not is_said(part)]
    return missing


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def name_key(name: str) -> str:
    """Return a key that is equal for spellings of a name that differ in case, article or possessive."""
    return " ".join(POSSESSIVE.sub("", name).casefold().split()).removeprefix("the ").replace(".", "")


def acronyms(text: str) -> dict[str, str]:
    """Return acronyms and their expansions, from phrases such as "World Health Organization (WHO)"."""
    found = {}
    for match in ACRONYM.finditer(text):
        letters = [letter for letter in match.group(1) if letter.isalpha()]
        words = re.findall(r"[\w'’-]+", text[max(0, match.start() - 120) : match.start()])
        for count in range(len(letters), min(len(words), len(letters) + 4) + 1):
            chosen = words[-count:]
            initials = [word[0] for word in chosen if word[0].isupper()]
            if initials == letters and chosen[0][0].isupper():
                found[match.group(1)] = " ".join(chosen)
                break
    return found


def subject(text: str) -> str | None:
    """Return the subject of an encyclopedic text: the name before "is", "was", a bracket or a comma."""
    found = SUBJECT.match(text)
    if found is None:
        return None
    name = found.group(1).strip(" \"”’'\n")
    return name if name and len(name.split()) <= 10 and name.lower() not in OPENERS else None


def title_forms(title: str) -> list[str]:
    """Return the forms of a title used in texts: unchanged, without brackets, and up to the first comma."""
    plain = " ".join(re.sub(r"\s*\([^)]*\)\s*", " ", title).split())
    forms = dict.fromkeys(form for form in (title.strip(), plain, plain.split(",")[0].strip()) if len(form) > 2)
    return [form for form in forms if form.lower() not in OPENERS]


SHORT_FORMS = """
mr mrs ms dr prof st sr jr vs etc e.g i.e cf al fig eq no vol pp p ch sec tab inc ltd co corp dept est approx
gen col lt sgt capt rev hon gov sen rep pres jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k ca b d
"""
ABBREVIATIONS = frozenset(SHORT_FORMS.split())
END = re.compile(
    r"""(?:(?<![.!?…])[.!?…]++["'”’)\]]*+(?=\s++["'“‘(\[]*+[^\W_a-zß-öø-ÿ])|[。！？]+["”’」』）]*|\n[ \t]*\n)\s*"""
)
"""Possessive quantifiers prevent backtracking, which would take quadratic time on a long run of full stops."""
LAST_WORD = re.compile(r"[\w.]+$")
ITEM_NUMBER = re.compile(r"\s*\(?(?:\d{1,3}|[ivx]{1,5})\)?")
"""Number of a list item before its text: 2., (3)., iv."""
LONGEST_SHORT_FORM = 40
"""Maximum distance from the start of an abbreviation to its full stop, in characters."""


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return the spans of the sentences between two offsets, without surrounding white space."""
    stop = len(text) if end is None else end
    spans, begin = [], start
    for found in END.finditer(text, start, stop):
        if not _is_end(text, begin, found):
            continue
        spans.append((begin, found.end()))
        begin = found.end()
    spans.append((begin, stop))
    stripped = ((a + len(text[a:b]) - len(text[a:b].lstrip()), a + len(text[a:b].rstrip())) for a, b in spans)
    return [(a, b) for a, b in stripped if a < b]


def sentences(text: str) -> list[str]:
    """Split a text into sentences."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _is_end(text: str, begin: int, found: re.Match[str]) -> bool:
    """Return whether a match ends a sentence, unlike a full stop after an initial, abbreviation or item number."""
    if ITEM_NUMBER.fullmatch(text, begin, found.start()):
        return False
    if not found.group().startswith(".") or found.group().startswith(".."):
        return True
    word = LAST_WORD.search(text, max(begin, found.start() - LONGEST_SHORT_FORM), found.start())
    if word is None:
        return True
    last = word.group().lower().strip(".")
    return not (last in ABBREVIATIONS or (len(last) == 1 and last.isalpha()) or re.fullmatch(r"(\w\.)+\w", last))


T = TypeVar("T", bound=Hashable)
WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Match(Generic[T]):
    """The span of a phrase in a text, and all its meanings."""

    start: int
    end: int
    meanings: tuple[T, ...]


@dataclass
class PhraseMatcher(Generic[T]):
    """Case-insensitive matcher for phrases. `add` all phrases before calling `find`."""

    _meanings: dict[tuple[str, ...], dict[T, None]] = field(default_factory=dict)
    _lengths: dict[str, list[int]] = field(default_factory=dict)
    """First word → lengths of the phrases that start with it, longest first."""

    def add(self, phrase: str, meaning: T) -> None:
        """Add a meaning to a phrase, which may have several."""
        words = tuple(word.lower() for word in WORD.findall(phrase))
        if not words:
            return
        self._meanings.setdefault(words, {})[meaning] = None
        lengths = self._lengths.setdefault(words[0], [])
        if len(words) not in lengths:
            lengths.append(len(words))
            lengths.sort(reverse=True)

    def find(self, text: str, *, capitalised: bool = False) -> Iterator[Match[T]]:
        """Yield non-overlapping matches from left to right. `capitalised` skips phrases that start in lower case."""
        words = [(found.group(), found.start(), found.end()) for found in WORD.finditer(text)]
        lower = [word.lower() for word, _, _ in words]
        place = 0
        while place < len(words):
            taken = 1
            if not capitalised or not words[place][0][0].islower():
                for length in self._lengths.get(lower[place], ()):
                    meanings = self._meanings.get(tuple(lower[place : place + length]))
                    if meanings is not None and place + length <= len(words):
                        yield Match(words[place][1], words[place + length - 1][2], tuple(meanings))
                        taken = length
                        break
            place += taken


def matcher(phrases: Iterable[tuple[str, T]]) -> PhraseMatcher[T]:
    """Build a matcher from pairs of phrase and meaning."""
    built: PhraseMatcher[T] = PhraseMatcher()
    for phrase, meaning in phrases:
        built.add(phrase, meaning)
    return built
