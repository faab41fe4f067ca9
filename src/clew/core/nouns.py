"""Singular and plural of English nouns, since data call a node type "Customer" or "customers"."""

from __future__ import annotations

import re

_IRREGULAR = {
    "people": "person",
    "children": "child",
    "men": "man",
    "women": "woman",
    "lenses": "lens",
    "buses": "bus",
    "gases": "gas",
    "statuses": "status",
    "viruses": "virus",
    "heroes": "hero",
}
_ENDINGS = {"ies": "y", "sses": "ss", "xes": "x", "ches": "ch", "shes": "sh", "yses": "ysis", "s": ""}
_ONLY_S = frozenset({"movies", "cookies", "calories", "pies", "ties", "caches"})
_ONE_AND_MANY = frozenset({"series", "species", "news"})
_NOT_MANY = ("ss", "us", "is")
_NEVER_MANY = _ONE_AND_MANY | {"lens", "gas", "atlas", "canvas", "alias"}
_LAST_WORD = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+s)$")


def singular(name: str) -> str:
    """Return the singular: "order details" → "order detail", "Categories" → "Category"."""
    found = _LAST_WORD.search(name)
    word = found.group() if found else ""
    lower = word.lower()
    if lower in _IRREGULAR:
        one = _IRREGULAR[lower]
        return name[: -len(word)] + (one.capitalize() if word[0].isupper() else one)
    if len(word) < 3 or not lower.endswith("s") or lower.endswith(_NOT_MANY) or lower in _NEVER_MANY:
        return name
    ending = "s" if lower in _ONLY_S else next(ending for ending in _ENDINGS if lower.endswith(ending))
    return name[: -len(ending)] + _ENDINGS[ending]


def plural(name: str) -> str:
    """Return the plural: "city" → "cities". A plural stays unchanged."""
    if singular(name) != name or name.endswith(tuple(_ONE_AND_MANY)):
        return name
    for many, one in _IRREGULAR.items():
        if name == one or name.endswith(f" {one}"):
            return name[: -len(one)] + many
    if name.endswith("sis"):
        return f"{name[:-2]}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith(("s", "x", "ch", "sh")) else f"{name}s"
