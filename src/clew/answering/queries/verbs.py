"""Names of relations as English verbs: for one thing, for several, and denied."""

from __future__ import annotations

from clew.core.nouns import singular
from clew.core.schema import words_of

PREPOSITIONS = tuple(
    f" {word}" for word in ("about", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "under", "with")
)


def asking(label: str) -> str:
    """Return a relation as people ask by it of many things: "treat", "are associated with", "have the director"."""
    _, rest, form = parts_of(label)
    return f"have the{rest}" if form == "noun" else plural_verb(label, False)


def plural_verb(label: str, negated: bool) -> str:
    """Return a relation as a verb of many things: treats → "treat", associated_with → "are associated with"."""
    first, rest, form = parts_of(label)
    if form == "be":
        return f"are{' not' if negated else ''}{rest}"
    return f"{'do not ' if negated else ''}{base_form(first)}{rest}"


def singular_verb(label: str, negated: bool) -> str:
    """Return a relation as a verb of one thing that stands before what it is about."""
    first, rest, form = parts_of(label)
    if form == "be":
        return f"is{' not' if negated else ''}{rest}"
    return f"does not {base_form(first)}{rest}" if negated else f"{first}{rest}"


def parts_of(label: str) -> tuple[str, str, str]:
    """Return the verb, what follows it, and whether it is a form of "be", a verb, or was put before a noun."""
    words = words_of(label).split()
    first, rest = words[0], "".join(f" {word}" for word in words[1:])
    if first in ("is", "are", "was", "were"):
        return "is", " a kind of" if rest == " a" else rest, "be"
    if first in ("has", "have", "can") or (first.endswith("s") and singular(first) != first):
        return ("has" if first == "have" else first), rest, "verb"
    if rest.endswith(PREPOSITIONS):
        return "is", f" {first}{rest}", "be"
    return "has", f" {first}{rest}", "noun"


def base_form(verb: str) -> str:
    """Return a verb of one thing as a verb of many."""
    irregular = {"has": "have", "does": "do", "goes": "go", "can": "can", "do": "do"}
    if verb in irregular or not verb.endswith("s"):
        return irregular.get(verb, verb)
    if verb.endswith("ies") and len(verb) > len("lies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("sses", "ches", "shes", "xes")) else verb[:-1]
