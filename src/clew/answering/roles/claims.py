"""Check the claims of a written answer against the sentences it cites.

1. Split a claim into words, numbers and literals (names, options, paths, versions).
2. Select as evidence up to three sentences of the cited sources, or one of each, that cover most of the claim.
3. Compare both. The share of covered words and the similarity in meaning raise the support. Missing literals, opposite
   words and a "not" on one side only lower it. A missing number, or a name that only other sources have, sets it to
   zero.
4. If the citations do not support a claim, search the other sources.

The check misses a name swapped for another name of the same sentence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from clew.answering.reading import words_file
from clew.answering.reading.quantities import quantities
from clew.core.proper_names import OPENERS, sentence_spans
from clew.core.roles import CitedClaim, Source
from clew.models.protocol import Embedder
from clew.store.index.tokens import stem, stop_words, tokenise

WINDOW = 3
"""Maximum number of sentences that may support a claim together, unless it cites more sources."""
LONGEST_SENTENCE = 400
"""Length in characters above which each line counts as a sentence, because lists and tables have no full stops."""
NEARBY = 3
"""Number of content words before and after a number that show what it counts."""
_PIECE = re.compile(r"[^\s\"“”‘’'`´()\[\]{}<>,;!?|…→—–]+")
_NAME = re.compile(r"\b[^\W\d_a-z]\w+")
"""A word that does not begin with a small letter."""
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"[-+]?\d[\d.,-]*%?")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")
_NEGATOR = re.compile(r"\b(?:not|no|never|none|nor|neither|without|cannot|nothing|unable|\w+n['’]t)\b", re.IGNORECASE)
_DENIAL = re.compile(
    r"\b(?:silently|fail\w*|prevent\w*|avoid\w*|impossible|lack\w*|omit\w*|ignor\w*|unless|instead|only|un\w+|dis\w+|il?legal|in(?:valid|active|ability)\w*)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:!?]\s|\b(?:but|and|because|so|although|though|if|when|which|since)\b", re.IGNORECASE)
_FILLER = re.compile(
    r"\b(?:among other things|in (?:return|addition|particular|turn)|for (?:example|instance))\b", re.IGNORECASE
)
_VERDICT = re.compile(r"(?:yes|no)\b\s*[,:;.–—-]\s*", re.IGNORECASE)
CLOSE = 5
"""Maximum distance in the evidence between neighbouring words of a claim, in content words."""
COUNTED = 12
"""Largest number, written as a word, that may be the writer's own count."""
SCOPE = 4
"""Number of content words after a "not" that it negates."""


CONSTANT = -2.45
WEIGHTS = {
    "recall": 0.92,
    "cosine": 1.82,
    "weakest": 1.77,
    "apart": -1.94,
    "literals": -0.83,
    "negation": -3.35,
    "opposites": -1.77,
}
"""Logistic regression over the comparison of a claim with its evidence. 0.5 separates supported from unsupported.

Fitted to the tuning half of tests/data/claims.jsonl and to sentences of 400 answers to questions about half of thirteen
folders of manuals. The sentences were used unchanged, with a changed number, name or "not", with an added detail, and
with the wrong passage. The constant is set so that 90 % of answers from one passage count as supported.

On 783 answers about fifteen other folders, without the embedder, 89 % of those from one passage count as supported and
73 % of those from several. Of these answers, the check accepts 9 % with a changed number, 19 % with a "not" and 2 %
with the passages of another question. Of sentences over facts of a graph, it accepts two of three in which a name was
swapped for another of the same facts.
"""
USUAL_COSINE = 0.7
"""Similarity without an embedder: the typical value of supported claims."""


@dataclass(frozen=True, slots=True)
class ClaimComparison:
    """Comparison of a claim with its evidence."""

    recall: float
    """Share of the claim's words that occur in the evidence."""
    weakest: float
    """Lowest recall of any clause of the claim. A low value shows an added detail."""
    apart: float
    """Share of neighbouring words that one source has, but not close to each other. Shows a swapped name."""
    literals: int
    """Number of names, options, paths and versions missing from the evidence."""
    numbers: int
    """Number of numbers that the evidence lacks, or has for something else."""
    negation: float
    """1 if one side negates a word that the other affirms, 0.5 if that is doubtful."""
    opposites: int
    """Number of words of the claim whose opposite occurs in the evidence instead."""
    cosine: float | None = None
    """Similarity in meaning. None without an embedder."""

    def support(self) -> float:
        """Return the support from 0 to 1. It is 0 if the evidence lacks a number."""
        if self.numbers:
            return 0.0
        compared = self if self.cosine is not None else replace(self, cosine=USUAL_COSINE)
        total = CONSTANT + sum(weight * getattr(compared, name) for name, weight in WEIGHTS.items())
        return 1 / (1 + math.exp(-total))


@dataclass(frozen=True, slots=True)
class _Number:
    value: float
    nearby: frozenset[str]
    """Content words near the number."""
    is_counted: bool
    """Whether it is a small number written as a word, which may be the writer's own count."""


@dataclass(frozen=True)
class _ComparedText:
    """The parts of a text to compare."""

    words: tuple[str, ...]
    """Stems of the content words, in reading order."""
    clauses: tuple[tuple[str, ...], ...]
    """Stems of each clause that has at least two content words."""
    literals: tuple[str, ...]
    """Names, options, paths and versions as words with single spaces."""
    numbers: tuple[_Number, ...]
    plain: str
    """All words in lower case, with a space before and after each."""
    values: frozenset[float]
    rejected: frozenset[str]
    """Content word after each negation."""
    denied: frozenset[str]
    """Content words around each negation."""
    affirmed: frozenset[str]
    is_negative: bool
    may_deny: bool

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(stem(word) for word in self.plain.split())


@lru_cache(maxsize=5000)
def _parse(text: str) -> _ComparedText:
    apart = re.sub(r"(?<=\d)(?=[^\W\d_])", " ", text)
    words: list[str] = []
    literals: list[str] = []
    begins = {start for start, _ in sentence_spans(text)}
    for found in _PIECE.finditer(text):
        piece = found.group().rstrip(".:")
        parts = [token.text for token in tokenise(re.sub(r"(?<=\d)(?=[^\W\d_])", " ", piece))]
        if not parts or _NUMBER.fullmatch(piece):
            continue
        if _is_literal(piece, parts, is_first=found.start() in begins or found.start() - 1 in begins):
            literals.append(" ".join(parts))
        words += [stem(part) for part in parts if part not in stop_words() and not part.isdecimal()]
    numbers = [_Number(value, _nearby(text, start), is_counted) for value, start, is_counted in _values(text)]
    values = {_float(digits) for digits in _DIGITS.findall(text)}
    clauses = [tuple(_content(clause)) for clause in _CLAUSE.split(_FILLER.sub("", text))]
    return _ComparedText(
        tuple(words),
        tuple(clause for clause in clauses if len(clause) > 1),
        tuple(dict.fromkeys(literals)),
        tuple(numbers),
        f" {' '.join(token.text for token in tokenise(apart))} ",
        frozenset(values) | {number.value for number in numbers},
        *_polarity(text),
        _NEGATOR.search(text) is not None,
        _DENIAL.search(text) is not None,
    )


def _nearby(text: str, start: int) -> frozenset[str]:
    """Return the content words before and after a number, in its clause if that has any."""
    before = max((found.end() for found in _CLAUSE.finditer(text, 0, start)), default=0)
    after = _CLAUSE.search(text, start)
    for first, last in ((before, after.start() if after else len(text)), (0, len(text))):
        place, content = len(_content(text[first:start])), _content(text[first:last])
        if words := content[max(0, place - NEARBY) : place + NEARBY]:
            return frozenset(words)
    return frozenset()


def _values(text: str) -> list[tuple[float, int, bool]]:
    """Return the numbers of a text with offsets, and whether each is a small number word. A date counts as its year."""
    found: list[tuple[float, int, bool]] = []
    ends = [0]
    for quantity in quantities(text):
        is_counted = quantity.text.isalpha() and (quantity.value or 0) <= COUNTED
        value = float(quantity.low[:4]) if quantity.value is None else quantity.value
        if not (is_counted and value == 1):
            found.append((value, quantity.start, is_counted))
            ends.append(quantity.end)
    taken = [(start, end) for (_, start, _), end in zip(found, ends[1:], strict=True)]
    for piece in _PIECE.finditer(text):
        is_taken = any(start < piece.end() and piece.start() < end for start, end in taken)
        if not is_taken and _NUMBER.fullmatch(piece.group()):
            found += [(_float(digits), piece.start(), False) for digits in _DIGITS.findall(piece.group())]
    return found


def _float(digits: str) -> float:
    whole, _, fraction = digits.partition(".")
    return float(f"{whole.replace(',', '')}.{fraction.replace('.', '').replace(',', '')}")


def _content(text: str) -> list[str]:
    return [
        stem(token.text) for token in tokenise(text) if token.text not in stop_words() and not token.text.isdecimal()
    ]


def _is_literal(piece: str, parts: Sequence[str], *, is_first: bool) -> bool:
    """Check whether a text must occur in the evidence verbatim: a name, an option, a path, a version."""
    bare = piece.strip("*_.:")
    if any(letter.isdecimal() for letter in bare) or re.search(r"[_/=\\~@#$+*]|\w[.:]\w", piece):
        return True
    if piece.startswith("-") or (len(parts) > 1 and any(len(part) == 1 for part in parts)):
        return True
    if re.search(r"[a-z][A-Z]|[A-Z]{2}", bare):
        return True
    return not is_first and bare[:1].isupper() and len(bare) > 1 and parts[0] not in OPENERS | stop_words()


def _polarity(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the content word after each negation, the words around it in its clause, and all remaining words."""
    rejected: set[str] = set()
    denied: set[str] = set()
    rest = text
    for found in _NEGATOR.finditer(text):
        end = _CLAUSE.search(text, found.end())
        stop = end.start() if end else len(text)
        after = _content(text[found.end() : stop])[:SCOPE]
        rejected.update(after[:1])
        # "A does it while B does not": the negated words come first.
        denied.update(after, _content(text[: found.start()])[-1 if after else -2 * SCOPE :])
        rest = rest[: found.start()] + " " * (stop - found.start()) + rest[stop:]
    return frozenset(rejected), frozenset(denied), frozenset(_content(rest))


@lru_cache(maxsize=1)
def _opposites() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    lines = words_file("opposites.txt").splitlines()
    groups = [[frozenset(side.split()) for side in line.split("|")] for line in lines if "|" in line]
    return tuple((side, other) for one, two in groups for side, other in ((one, two), (two, one)))


def compare(
    claim: str, evidence: Sequence[str], heading: str = "", sources: Sequence[int] | None = None
) -> ClaimComparison:
    """Compare a claim with its evidence. The heading names the topic of the evidence.

    `sources` are the sources of the pieces of evidence. Without them, all pieces are from one source.
    """
    said = _parse(claim.removeprefix(verdict[0]) if (verdict := _VERDICT.match(claim)) else claim)
    pieces, about = list(map(_parse, evidence)), _parse(heading)
    held = frozenset[str]().union(about.stems, *(piece.stems for piece in pieces))
    plain = " ".join((about.plain, *(piece.plain for piece in pieces)))
    words = set(plain.split())
    own = set(said.plain.split())
    return ClaimComparison(
        recall=_share(said.words, held),
        weakest=min((_share(clause, held) for clause in said.clauses), default=1.0),
        apart=_apart(_content(claim), list(map(_content, evidence)), sources or [0] * len(evidence)),
        literals=sum(not _holds(literal, plain, held) for literal in said.literals),
        numbers=sum(not _number_agrees(number, pieces, about) for number in said.numbers),
        negation=_negation(said, pieces),
        opposites=sum(bool(own & side and not words & side and words & other) for side, other in _opposites()),
    )


def _share(words: Sequence[str], held: frozenset[str]) -> float:
    return sum(word in held or _derived(word, held) for word in words) / len(words) if words else 1.0


def _apart(words: Sequence[str], pieces: Sequence[Sequence[str]], sources: Sequence[int]) -> float:
    held: dict[int, set[str]] = {}
    for source, piece in zip(sources, pieces, strict=True):
        held.setdefault(source, set()).update(piece)
    pairs = {
        pair for pair in pairwise(words) if pair[0] != pair[1] and any(own.issuperset(pair) for own in held.values())
    }
    close = {
        (word, other)
        for piece in pieces
        for place, word in enumerate(piece)
        for other in piece[max(0, place - CLOSE) : place + CLOSE + 1]
    }
    return len(pairs - close) / len(pairs) if pairs else 0.0


def _derived(word: str, held: frozenset[str]) -> bool:
    """Check whether a related word occurs: recording, recorder; compensation, compensate."""
    return len(word) >= 5 and any(other.startswith(word[: max(5, len(word) - 3)]) for other in held if len(other) >= 5)


def _holds(literal: str, plain: str, held: frozenset[str]) -> bool:
    if f" {literal} " in plain or f" {literal.replace(' ', '')} " in plain:
        return True
    if literal.isalpha() and (stem(literal) in held or _derived(stem(literal), held)):
        return True
    initials = "".join(word[0] for word in plain.split())
    return literal.isalpha() and 3 <= len(literal) <= 6 and literal in initials


def _number_agrees(number: _Number, pieces: Sequence[_ComparedText], about: _ComparedText) -> bool:
    """Check that a number occurs. A piece without it must not match its nearby words better."""
    having = [len(number.nearby & piece.stems) for piece in pieces if number.value in piece.values]
    others = [
        len(number.nearby & other.nearby)
        for piece in pieces
        if number.value not in piece.values
        for other in piece.numbers
    ]
    if not having and number.is_counted:
        return not any(others)
    return max(having) >= max(others, default=0) if having else number.value in about.values


def _negation(said: _ComparedText, pieces: Sequence[_ComparedText]) -> float:
    denied = frozenset[str]().union(*(piece.denied for piece in pieces))
    affirmed = frozenset[str]().union(*(piece.affirmed for piece in pieces))
    rejected = frozenset[str]().union(*(piece.rejected for piece in pieces))
    is_denied = any(piece.is_negative or piece.may_deny for piece in pieces)
    if said.rejected & affirmed - denied:
        return 0.5 if is_denied else 1.0
    if rejected & said.affirmed - said.denied - affirmed:
        return 0.5 if said.is_negative or said.may_deny else 1.0
    return 0.5 if said.rejected and not is_denied else 0.0


@dataclass(frozen=True, slots=True)
class _ClaimSentence:
    source: int
    start: int
    end: int
    text: str
    heading: str


def _sentences(place: int, source: Source) -> list[_ClaimSentence]:
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(source.text):
        is_long = end - start > LONGEST_SENTENCE and "\n" in source.text[start:end]
        spans += _lines(source.text, start, end) if is_long else [(start, end)]
    return [_ClaimSentence(place, start, end, source.text[start:end], source.title) for start, end in spans]


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    return [(start + found.start(), start + found.end()) for found in re.finditer(r"\S[^\n]*", text[start:end])]


def gather(claim: str, sentences: Sequence[_ClaimSentence]) -> list[_ClaimSentence]:
    """Return up to three sentences, or one of each source, that cover most of a claim. Each must add something new."""
    wanted = _items(claim)
    total = sum(wanted.values()) or 1.0
    held = {sentence: _held(wanted, sentence) for sentence in sentences}
    chosen: list[_ClaimSentence] = []
    while len(chosen) < max(WINDOW, len({sentence.source for sentence in sentences})):
        covered = frozenset[str]().union(*(held[sentence] for sentence in chosen))
        gains = [
            (sum(wanted[item] for item in held[sentence] - covered) / total, sentence.text, sentence)
            for sentence in sentences
            if sentence not in chosen
        ]
        enough = [gain for gain in gains if not chosen or gain[0] >= (NEXT if _is_next(gain[2], chosen) else FURTHER)]
        if not enough:
            break
        chosen.append(max(enough, key=lambda gain: gain[:2])[2])
    return chosen


def _is_next(sentence: _ClaimSentence, chosen: Sequence[_ClaimSentence]) -> bool:
    """Return whether a sentence is the first of its source, or next to one that is already selected."""
    return all(sentence.source != one.source for one in chosen) or any(
        sentence.source == one.source and min(abs(sentence.start - one.end), abs(one.start - sentence.end)) <= GAP
        for one in chosen
    )


FURTHER = 0.15
"""Minimum share of a claim that another sentence must add to count as evidence."""
NEXT = 0.05
"""Minimum share for the first sentence of another source, and for one next to a sentence that is already selected."""
GAP = 5
"""Maximum number of characters between adjacent sentences."""


def _items(claim: str) -> dict[str, float]:
    """Return the parts of a claim with their weights. Literals and numbers count twice."""
    said = _parse(claim)
    items = dict.fromkeys(said.words, 1.0) | dict.fromkeys(said.literals, 2.0)
    return items | {f"{number.value:g}#": 2.0 for number in said.numbers}


def _held(wanted: dict[str, float], sentence: _ClaimSentence) -> frozenset[str]:
    parsed = _parse(sentence.text)
    stems = parsed.stems
    values = {f"{value:g}#" for value in parsed.values}
    return frozenset(
        item
        for item in wanted
        if item in stems or item in values or (not item.endswith("#") and _holds(item, parsed.plain, stems))
    )


def check_claims(
    claims: Sequence[CitedClaim], sources: Sequence[Source], embedder: Embedder | None = None
) -> tuple[list[CitedClaim], list[str]]:
    """Return the claims with their support and supporting sentences, and notes about changed citations."""
    sentences = [_sentences(place, source) for place, source in enumerate(sources)]
    checked = _check(claims, sentences, embedder)
    notes: list[str] = []
    weak = [place for place, claim in enumerate(checked) if not claim.is_supported]
    others = [
        (place, source) for place in weak for source in range(len(sources)) if claims[place].citations != (source,)
    ]
    tried = _check([replace(claims[place], citations=(source,)) for place, source in others], sentences, embedder)
    for place in weak:
        own = [claim for (tried_for, _), claim in zip(others, tried, strict=True) if tried_for == place]
        best = max(own, key=lambda claim: (claim.support, sources[claim.citations[0]].text), default=None)
        if best is not None and best.is_supported:
            checked[place] = best
            cited = ", ".join(str(citation + 1) for citation in claims[place].citations) or "nothing"
            notes.append(f"sentence {place + 1} cited {cited}; source {best.citations[0] + 1} says it")
    return checked, notes


def _check(
    claims: Sequence[CitedClaim], sentences: Sequence[Sequence[_ClaimSentence]], embedder: Embedder | None
) -> list[CitedClaim]:
    evidence = [
        gather(claim.text, [one for citation in claim.citations for one in sentences[citation]]) for claim in claims
    ]
    cosines = _cosines([claim.text for claim in claims], evidence, embedder)
    checked = []
    for claim, chosen, cosine in zip(claims, evidence, cosines, strict=True):
        headings = " ".join(dict.fromkeys(one.heading for one in chosen))
        comparison = compare(claim.text, [one.text for one in chosen], headings, [one.source for one in chosen])
        support = replace(comparison, cosine=cosine).support() if chosen else 0.0
        if _names_others(claim, sentences):
            support = 0.0
        if any(_is_copied(claim.text, one.text) for citation in claim.citations for one in sentences[citation]):
            support = 1.0
        spans = tuple(_span(claim.text, citation, chosen, sentences[citation]) for citation in claim.citations)
        checked.append(replace(claim, support=support, spans=spans))
    return checked


def _names_others(claim: CitedClaim, sentences: Sequence[Sequence[_ClaimSentence]]) -> bool:
    """Check whether a claim contains a name that only sources have which it does not cite."""
    texts = [" ".join(f"{one.heading} {one.text}" for one in own) for own in sentences]
    own = " ".join(texts[citation] for citation in claim.citations)
    cited = {word.lower() for word in (*_WORD.findall(own), *_NAME.findall(own))}
    names = {name for name in _NAME.findall(claim.text) if name.lower() not in cited | stop_words() | OPENERS}
    return any(not names.isdisjoint(_NAME.findall(text)) for text in texts)


def _is_copied(claim: str, sentence: str) -> bool:
    """Check whether a claim is a sentence of its source, ignoring case and spaces."""
    return " ".join(claim.casefold().split()) == " ".join(sentence.casefold().split())


def _span(
    claim: str, citation: int, chosen: Sequence[_ClaimSentence], sentences: Sequence[_ClaimSentence]
) -> tuple[int, int]:
    """Return the span of the sentence in a cited source that covers most of the claim."""
    own = [one for one in chosen if one.source == citation] or gather(claim, sentences)
    return (own[0].start, own[0].end) if own else (0, 0)


def _cosines(
    claims: Sequence[str], evidence: Sequence[Sequence[_ClaimSentence]], embedder: Embedder | None
) -> list[float | None]:
    if embedder is None:
        return [None] * len(claims)
    texts = [[*(one.text for one in chosen), " ".join(one.text for one in chosen)] for chosen in evidence]
    every = list(dict.fromkeys([*claims, *(text for own in texts for text in own)]))
    row = {text: place for place, text in enumerate(every)}
    vectors = embedder.embed(every, role="document")
    return [
        max(float(np.dot(vectors[row[claim]], vectors[row[text]])) for text in own)
        for claim, own in zip(claims, texts, strict=True)
    ]
