"""Words for relations and types: the phrases by which people may refer to `directed_by` or `gene/protein`.

A schema names its relations for machines. From a name, its display name, its inverse and its description come the
variants a question may use: without has_ and in_, each word that carries meaning, the agent nouns of *_by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from clew.core.schema import NodeType, Relation
from clew.index.tokens import stem

EMPTY_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a an the of in on at by to for from with as is are was were be been being has have had having do does did
        that which who whom whose what this these those it its and or their his her not type relation related entity""",
    )
)
"""Words of a name that say nothing about what it means."""
IRREGULAR = {
    "written": ("write", "writer", "wrote"),
    "wrote": ("write", "writer", "written"),
    "born": ("birth", "bear"),
    "starred": ("star", "starring"),
    "sung": ("sing", "singer", "sang"),
    "made": ("make", "maker"),
    "won": ("win", "winner"),
    "spoken": ("speak", "speaker"),
    "taught": ("teach", "teacher"),
    "founded": ("found", "founder"),
    "led": ("lead", "leader"),
    "held": ("hold", "holder"),
    "built": ("build", "builder"),
    "drawn": ("draw", "drew"),
    "sold": ("sell", "seller"),
    "given": ("give", "gave"),
    "known": ("know",),
    "died": ("death", "die"),
}
"""Verbs whose forms no rule gives."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BREAK = re.compile(r"[^0-9A-Za-zÀ-￿]+")


@dataclass(frozen=True, slots=True)
class Variant:
    """A phrase for a relation or a type, and how much it says: 1 for the name itself, less for a word of it."""

    text: str
    weight: float
    shared: frozenset[str] = frozenset()
    """Words that name the type at an end of the relation: alone they say less, as the type says it as well."""


@lru_cache(maxsize=20_000)
def words(name: str) -> tuple[str, ...]:
    """A name as people would read it: snake_case, camelCase, dots and slashes broken into lower-case words."""
    return tuple(part.lower() for part in _BREAK.split(_CAMEL.sub(" ", name)) if part)


def content(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The words that carry meaning; all of them where none does."""
    return tuple(part for part in parts if part not in EMPTY_WORDS) or parts


def says_something(phrase: str) -> bool:
    """Whether a phrase has a word that carries meaning; "is a" has none."""
    return any(part not in EMPTY_WORDS for part in words(phrase))


def forms(word: str) -> tuple[str, ...]:
    """Other forms of a verb: written → writer, wrote; directed → director, directs."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("ed") and len(word) > 4:
        root = word[:-2]
        doubled = root[:-1] if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "ls" else root
        return tuple(dict.fromkeys((doubled, root + "e", doubled + "er", doubled + "or", root + "ing")))
    return ()


def relation_variants(relation: Relation) -> tuple[Variant, ...]:
    """Phrases for a relation, best first."""
    ends = {stem(part) for kind in (relation.head, relation.tail) for part in words(kind)}
    found = list(_relation_variants(relation))
    shared = frozenset(part for text, _ in found for part in words(text) if stem(part) in ends)
    return _unique(Variant(text, weight, shared) for text, weight in found)


def _relation_variants(relation: Relation) -> Iterator[tuple[str, float]]:
    name = words(relation.name)
    for phrase in (relation.display, relation.inverse, " ".join(name)):
        if phrase:
            yield phrase.lower(), 1.0
            yield " ".join(content(words(phrase))), 1.0
    for part in content(name):
        yield part, 0.95
        for form in forms(part):
            yield form, 0.95
    for phrase in (relation.display, relation.inverse):
        for part in content(words(phrase)):
            yield part, 0.9
    if relation.transitive:
        for word in ("kind", "subtype", "type", "subclass", "form", "category", "parent", "child"):
            yield word, 0.7
    for part in content(words(relation.description)):
        yield part, 0.5


def type_variants(node_type: NodeType) -> tuple[Variant, ...]:
    """Phrases for a node type, best first: `gene/protein` is a gene and a protein."""
    return _unique(_type_variants(node_type))


def _type_variants(node_type: NodeType) -> Iterator[Variant]:
    for phrase in (node_type.display, node_type.name):
        if phrase:
            yield Variant(" ".join(words(phrase)), 1.0)
            for part in re.split(r"[/|,]| or ", phrase):
                yield Variant(" ".join(words(part)), 1.0)
    for part in content(words(node_type.description)):
        yield Variant(part, 0.5)
    parts = content(words(node_type.name))
    if len(parts) > 1:  # the last word of a compound names the kind of thing: biological process
        yield Variant(parts[-1], 0.8)


def _unique(variants: Iterator[Variant]) -> tuple[Variant, ...]:
    best: dict[str, Variant] = {}
    for variant in variants:
        known = best.get(variant.text)
        if variant.text.strip() and (known is None or known.weight < variant.weight):
            best[variant.text] = variant
    return tuple(sorted(best.values(), key=lambda variant: -variant.weight))


SAYS_LESS = 0.35
"""What a match is worth that only names the type at the end of a relation."""


def likeness(phrase: tuple[str, ...], variant: tuple[str, ...], shared: frozenset[str] = frozenset()) -> float:
    """How alike two phrases are by their letters, 0..1.

    Every word of the shorter must be found in the other; words beside them take a little away.
    """
    few, many = (phrase, variant) if len(phrase) <= len(variant) else (variant, phrase)
    total, telling = 0.0, False
    for word in few:
        best = max((word_likeness(word, other), other) for other in many)
        if not best[0]:
            return 0.0
        total += best[0]
        telling = telling or (best[1] if few is phrase else word) not in shared
    if not few:
        return 0.0
    return total / len(few) * (0.6 + 0.4 * len(few) / len(many)) * (1.0 if telling else SAYS_LESS)


@lru_cache(maxsize=100_000)
def word_likeness(first: str, second: str) -> float:
    """1 for the same stem, 0.8 for a long common beginning, 0.6 for a long common end, else 0."""
    if first == second or stem(first) == stem(second):
        return 1.0
    short, long = sorted((first, second), key=len)
    if len(short) < 4:
        return 0.0
    common = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if common >= 4 and 3 * common >= 2 * len(short) and 2 * common >= len(long):
        return 0.8
    return 0.6 if len(short) >= 5 and long.endswith(short) else 0.0
