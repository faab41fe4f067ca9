"""Structural references in a question: pages, sections, tables, figures and items by number, order and heading.

This module does not use a base. `references` finds the named parts, `wanted` the request about them. `locating` matches
them with a base.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from clew.answering.reading import words_file
from clew.core.nouns import plural, singular
from clew.store.index.tokens import stop_words, terms

Kind = Literal["page", "section", "table", "figure", "item"]
Want = Literal[
    "content", "summary", "comparison", "count", "page", "section", "next", "previous", "parts", "folder", "documents"
]
LABEL = r"(?:[A-Z]{1,3}[.\-]?)?\d+(?:[.\-]\d+)*[a-z]?(?![\w%])|[IVXLC]{1,6}\b(?!['’])|[A-Z]\b(?!['’])"
"""The number of a part as written: 3, 3.2, C.13, UC4, 5-b, XII, A."""
FILE = re.compile(r"[\w./-]+\.(?:pdf|docx|pptx|odt|ods|epub|html?|md|markdown|txt|rst|csv|tsv|xlsx|json|eml)\b", re.I)
CONNECTING = re.compile(
    r"(?:\b(?:in|on|of|from|at|within|to|by|under|according to|looking at)|\()\s*(?:the\s*)?$", re.I
)
LONGEST_HEADING = 8
"""Maximum number of words of a description to take as a heading."""


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(words_file("references.toml"))


@cache
def _kinds() -> dict[str, Kind]:
    """Return every word for a part, in singular and plural, with its kind."""
    found: dict[str, Kind] = {}
    for kind, words in _words()["parts"].items():
        for word in words:
            found[word] = kind
            if word.isalpha():
                found.setdefault(plural(word), kind)
    return found


@cache
def document_words() -> frozenset[str]:
    """Return words for documents."""
    return frozenset(_words()["documents"]["any"])


@cache
def general_terms() -> frozenset[str]:
    """Return terms that say nothing about the subject: words for documents, and “explain”, “mention”."""
    return frozenset(term for word in (*document_words(), *_words()["asking"]["telling"]) for term in terms(word))


def kind_of(word: str) -> Kind | None:
    """Return the kind of part that a word names, or None."""
    return _kinds().get(word.casefold()) or _kinds().get(word.casefold() + ".")


def _any_of(words: Iterable[str]) -> str:
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word) + (r"\b" if word[-1].isalnum() else "") for word in ordered)


@cache
def _ordinals() -> dict[str, int]:
    """Return the ordinal words with their values. -1 is the last."""
    words = _words()
    found = {word: place for place, word in enumerate(words["ordinals"], start=1)}
    found |= dict.fromkeys(words["last"], -1)
    return found | dict.fromkeys(words["last_but_one"], -2)


@cache
def _numbered() -> re.Pattern[str]:
    words = _words()
    label = rf"(?:{LABEL}|(?i:{_any_of(words['numbers'])})(?!\s+\w))"
    sign = rf"(?:(?i:{_any_of(words['number_signs'])})\s*)?"
    joint = rf"\s*(?:(?i:{_any_of(w for w in words['joints'] if w.isalpha())})|[,&])\s*(?:and\s+)?"
    return re.compile(
        rf"\b(?P<kind>(?i:{_any_of(_kinds())}))\s*\(?{sign}(?P<label>{label})\)?"
        rf"(?P<more>(?:{joint}{label}(?!\s+(?i:{_any_of(_kinds())})))*)"
    )


@cache
def _ordinal() -> re.Pattern[str]:
    """Return a pattern for "last page", "third configuration variable" and "fifth of the six files"."""
    kinds, word = _any_of(_kinds()), r"(?:\s+[\w'’*/-]+)"
    return re.compile(
        rf"\b(?P<ordinal>{_any_of(_ordinals())}|\d+(?:st|nd|rd|th)\b)(?:\s+of\s+the)?"
        rf"(?P<between>{word}{{0,2}}?)\s+(?:(?P<kind>{kinds})|(?P<noun>[\w-]+)(?!\s+(?:[\w-]+\s+)?(?:{kinds})))",
        re.IGNORECASE,
    )


BARE = re.compile(r"\b(?i:in|under|see|of|\()\s*(?P<label>\d+(?:\.\d+)+)\b(?=\s*(?:[,:;?()]|(?i:of|in)\b|$))")
QUOTED = r"""["“‘'](?P<quoted>[^"”’']{2,80})["”’']"""


@cache
def _headed() -> re.Pattern[str]:
    """Return a pattern for "chapter about encryption", "section called “Salt works”" and "table of port names"."""
    parts = _words()["parts"]
    sections = _any_of(word for word in parts["section"] if word.isalpha())
    others = _any_of(word for kind in ("table", "figure") for word in parts[kind] if word.isalpha())
    said = r"(?:called|titled|entitled|named|headed|on|about|covering|describing|dealing\s+with|for|with)"
    return re.compile(
        rf"\b(?:(?P<kind>{sections})\s+{said}|(?P<other>{others})\s+(?:{said}|of))\s+"
        rf"(?:{QUOTED}|(?:the\s+|an?\s+)?(?P<words>[^,:;?()]+))"
        rf"|\b(?P<name>{sections})\s+{QUOTED.replace('quoted', 'title')}",
        re.IGNORECASE,
    )


@cache
def _compound() -> re.Pattern[str]:
    """Return a pattern for "installation chapter" and "speed table"."""
    parts = _words()["parts"]
    kinds = _any_of(w for kind in ("section", "table", "figure") for w in parts[kind] if w.isalpha())
    return re.compile(rf"(?P<words>(?:[\w'’/.*+-]+\s+){{1,5}}?)(?P<kind>{kinds})(?!\s*\(?(?:{LABEL}))", re.IGNORECASE)


UNNUMBERED = re.compile(rf"\bthe\s+(?:appendix|annex)\b(?!\s+(?:{LABEL}))", re.IGNORECASE)
UNDER = re.compile(rf"\bunder\s+(?:{QUOTED}|(?P<words>[^,:;?()]+))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """A part that a question names: by its number as written, by its order, or by words of its heading."""

    kind: Kind
    word: str
    """The question's word for the part, in the singular."""
    label: str | None = None
    ordinal: int | None = None
    """Rank among parts of its kind, from 1. -1 is the last."""
    about: str | None = None
    start: int = 0
    end: int = 0
    following: str = ""
    """The next word in the question: “section 8 companies” is not a section."""
    quoted: bool = False
    """Whether the heading is in quotation marks."""

    @property
    def is_certain(self) -> bool:
        """Whether a number, an order or a quoted heading identifies the part."""
        return self.label is not None or self.ordinal is not None or self.quoted

    def in_words(self) -> str:
        """Return the reference as text."""
        if self.label is not None:
            return f"{self.word} {self.label}"
        if self.ordinal is not None:
            named = {place: word for word, place in reversed(_ordinals().items())}
            return f"{named.get(self.ordinal, f'{self.ordinal}th')} {self.word}"
        return f"{self.word} “{self.about}”"


def references(question: str) -> list[Reference]:
    """Return every part that a question names, in reading order.

    Numbers and order take precedence over descriptions.
    """
    found = [*_by_number(question), *_by_order(question)]
    found += [reference for reference in _by_words(question) if not any(_overlap(reference, one) for one in found)]
    return sorted(found, key=lambda reference: reference.start)


def _by_number(question: str) -> list[Reference]:
    found, spelled = [], {word: str(place) for place, word in enumerate(_words()["numbers"], start=1)}
    for match in _numbered().finditer(question):
        word = match.group("kind").casefold()
        labels = [match.group("label"), *re.findall(rf"{LABEL}|(?i:{_any_of(_words()['numbers'])})", match["more"])]
        after = re.match(r"\s+([\w-]+)", question[match.end() :])
        following = after.group(1) if after else ""
        chosen = re.search(
            r"\b(?:which|what|how many|all|any|some|these|those|our)\s+$", question[: match.start()], re.I
        )
        if chosen and terms(following):
            continue  # “which section 8 companies”
        if re.fullmatch(r"[A-Z]", labels[0]) and following not in ("", "of", "in", "on", "about"):
            continue  # “the table I made”
        for label in labels:
            label = spelled.get(label.casefold(), label)
            found.append(
                Reference(
                    _kinds()[word], _singular(word), label, start=match.start(), end=match.end(), following=following
                )
            )
    for match in BARE.finditer(question):
        if not any(one.start <= match.start("label") < one.end for one in found):
            found.append(
                Reference("section", "section", match.group("label"), start=match.start("label"), end=match.end())
            )
    return found


def _by_order(question: str) -> list[Reference]:
    found = []
    for match in _ordinal().finditer(question):
        written = match.group("ordinal").casefold()
        digits = re.match(r"\d+", written)
        place = int(digits.group()) if digits else _ordinals()[written]
        noun = (match.group("kind") or match.group("noun")).casefold()
        about = match.group("between").strip() if match.group("kind") else f"{match.group('between')} {noun}".strip()
        kind = _kinds().get(noun, "item")
        found.append(Reference(kind, _singular(noun), None, place, about or None, start=match.start(), end=match.end()))
    return found


def _by_words(question: str) -> list[Reference]:
    found = []
    for match in (*_headed().finditer(question), *UNDER.finditer(question)):
        groups = match.groupdict()
        quoted = groups.get("quoted") or groups.get("title")
        words = quoted or _noun_phrase(match.group("words"))
        word = (groups.get("kind") or groups.get("other") or groups.get("name") or "heading").casefold()
        end = match.end() if quoted else match.start("words") + len(words)
        if words:
            kind = _kinds().get(word, "section")
            found.append(Reference(kind, word, about=words, start=match.start(), end=end, quoted=bool(quoted)))
    for match in UNNUMBERED.finditer(question):
        found.append(Reference("section", "appendix", about="appendix", start=match.start(), end=match.end()))
    for match in _compound().finditer(question):
        words, word = _last_phrase(match.group("words")), match.group("kind").casefold()
        if words:
            start = match.end() - len(word) - len(words) - 1
            found.append(Reference(_kinds()[word], word, about=words, start=start, end=match.end()))
    return found


def _noun_phrase(words: str) -> str:
    """Return the words before the next phrase: “encryption in the manual” is about encryption."""
    kept: list[str] = []
    for word in words.split()[:LONGEST_HEADING]:
        if kept and word.casefold() in {"of", "in", "from", "does", "do", "is", "are", "say", "says", "has", "have"}:
            break
        kept.append(word)
    return " ".join(kept)


def _last_phrase(words: str) -> str:
    """Return the words directly before a noun that describe it."""
    kept: list[str] = []
    for word in reversed(words.split()):
        if word.casefold() in stop_words() or word.casefold() in document_words():
            break
        kept.insert(0, word)
    return " ".join(kept)


def _overlap(one: Reference, other: Reference) -> bool:
    return one.start < other.end and other.start < one.end


def _singular(word: str) -> str:
    return {"appendices": "appendix", "fig.": "figure"}.get(word) or singular(word)


@cache
def _document() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<before>(?:[\w'’/+.-]+\s+){{0,5}})(?<![\w-])(?P<noun>{_any_of(document_words())})(?!\.\w)", re.IGNORECASE
    )


def document_phrases(question: str) -> list[tuple[int, int]]:
    """Return the spans that name documents: a noun for a document with the words before it that describe it."""
    found = []
    for match in _document().finditer(question):
        described = _last_phrase(match.group("before"))
        if described or match.group("noun").casefold() not in ("file", "text"):
            found.append((match.start("noun") - (len(described) + 1 if described else 0), match.end()))
    return found


def without_references(question: str, found: Sequence[Reference], documents: Sequence[tuple[int, int]] = ()) -> str:
    """Remove words that only name a location. Descriptions stay, since texts may match them."""
    spans = {(one.start, one.end) for one in found if one.is_certain and (one.quoted or not one.about)}
    spans |= {match.span() for match in FILE.finditer(question)} | set(documents)
    last = len(question) + 1
    for start, end in sorted(spans, key=lambda span: (-span[1], span[0])):
        if end > last:
            continue
        before = CONNECTING.sub("", question[:start].rstrip())
        question = f"{before.rstrip()} {question[end:].lstrip(' )')}"
        last = start
    return " ".join(question.split()).strip(" ,:;-")


@cache
def _counting() -> re.Pattern[str]:
    kinds = _any_of(word for word, kind in _kinds().items() if kind != "item" and word.isalpha())
    return re.compile(
        rf"^how (?:many (?P<kind>{kinds})\s+(?:are there in|are in|has|have|does|do|is|in|of)|long is)\s+(?P<what>.+?)"
        r"(?:\s+(?:have|has|contain|long|got|there))?\s*\??$",
        re.IGNORECASE,
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request about parts: read them, summarise them, or return a fact about the structure."""

    what: Want
    kind: Kind = "section"
    about: str = ""
    """Relevant remaining words: where to count, or the subject of the page or section."""


def wanted(question: str, found: Sequence[Reference]) -> Wanted:
    """Return the request of a question. `content` asks for something written in a part."""
    low = question.casefold()
    asking = _words()["asking"]
    telling = rf"(?:of\b.*?)?\b(?:{_any_of(asking['telling'])})"
    kinds = _any_of(word for word, kind in _kinds().items() if kind != "item" and word.isalpha())
    if match := _counting().search(question.strip()):
        return Wanted("count", _kinds()[(match.group("kind") or "page").casefold()], match.group("what"))
    documents = _any_of((*document_words(), *map(plural, document_words())))
    match = re.search(rf"(?:^|\bin )(?:which|what)\s+(?:{documents}|files?\b)(?P<rest>.*)", question, re.I)
    if match and re.search(telling, match["rest"], re.I):
        return Wanted("documents", about=match["rest"])
    if match := re.search(r"\b(?:which|what)\s+(?:page|slide)s?\s+(?P<rest>.*)", question, re.I):
        before = question[: match.start()].split()[-1:]
        if before in (["on"], ["On"], ["at"], ["At"], ["from"]) or re.match(telling, match["rest"], re.I):
            return Wanted("page", "page", match["rest"])
    sections = _any_of(word for word, kind in _kinds().items() if kind == "section" and word.isalpha())
    if match := re.search(rf"\b(?:which|what)\s+(?P<kind>{sections})\b(?P<rest>.*)", question, re.I):
        follows = re.search(rf"\b(?:{_any_of(_words()['next'])})", match["rest"], re.I)
        precedes = re.search(rf"\b(?:{_any_of(_words()['previous'])})", match["rest"], re.I)
        if found and (follows or precedes):
            return Wanted("next" if follows else "previous", about=match["rest"])
        if re.search(telling, match["rest"], re.I):
            return Wanted("section", about=match["rest"])
    beside: tuple[Want, ...] = ("next", "previous") if found else ()
    for what in beside:
        if re.search(rf"\b(?:{kinds})\s+(?:{_any_of(_words()[what])})|\b{what}\s+(?:{kinds})", low):
            return Wanted(what)
    several = _any_of(word for word, kind in _kinds().items() if kind == "section" and word.endswith("s"))
    if match := re.search(
        rf"^(?:what|which|list|name|give)\b.{{0,20}}?\b(?:sub-?)?(?:{several})\b(?P<rest>.*)", question, re.I
    ):
        return Wanted("parts", about=match["rest"])
    folder = next((word for word in asking["folder"] if word in low), None)
    if folder is not None and asks_for_all(low.replace(folder, "")):
        return Wanted("folder")
    if re.search(rf"\b(?:{_any_of(asking['compare'])})", low):
        return Wanted("comparison")
    rest = without_references(question, found, document_phrases(question))
    starts = rf"^(?:please\s+)?(?:can you\s+)?(?:{_any_of(asking['summary'])})|\babout\s*(?:\?|,|$)"
    whole = asks_for_all(rest) or re.search(starts, low) is not None
    return Wanted("summary" if whole else "content", about=rest)


def asked_of_parts(question: str) -> tuple[list[Reference], Wanted] | None:
    """Return the named parts and the request, or None for a question about the content of all documents."""
    found = references(question)
    wants = wanted(question, found)
    return (found, wants) if found or wants.what != "content" else None


def asks_for_all(rest: str, *, of_a_document: bool = False) -> bool:
    """Return whether a question without its references asks only for the part itself, or the document itself."""
    words = (*_words()["asking"]["whole"], *_words()["asking"]["compare"], *_words()["joints"], *document_words())
    parts = () if of_a_document else (*_kinds(), *_ordinals())
    return set(terms(rest)) <= {term for word in (*words, *parts) for term in terms(word)}
