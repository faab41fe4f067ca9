"""Relations as verbs of one thing and of many: treats → "treat", associated_with → "are associated with"."""

from __future__ import annotations

import re

from clew.core.nouns import plural, singular
from clew.core.schema import label_of

PREPOSITIONS = tuple(
    f" {word}"
    for word in ("about", "as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "under", "with", "within")
)
PAST = dict(
    re.findall(
        r"(\w+):(\w+)",
        "appeared:appear arrived:arrive attended:attend belonged:belong came:come competed:compete departed:depart "
        "died:die fell:fall flew:fly graduated:graduate happened:happen lasted:last led:lead lived:live occurred:occur "
        "participated:participate played:play ran:run retired:retire served:serve starred:star started:start "
        "studied:study took:take went:go won:win worked:work wrote:write",
    )
)
"""Past participles without a passive: an accident happened, it was not happened."""
PRESENT = re.compile(
    "act|apply|appear|belong|come|compete|connect|contribute|depend|fly|go|lead|live|map|participate|play|point|refer|"
    "relate|report|run|serve|star|travel|work"
)
"""Verbs before a preposition, without an s."""


def of_many(label: str, *, negated: bool = False, one: bool = False) -> str:
    """Return a relation as a verb in the plural or the singular."""
    first, rest, form = verb_of(label)
    if form == "be":
        return f"{'is' if one else 'are'}{' not' if negated else ''}{rest}"
    if form == "past":
        return f"did not {PAST[first]}{rest}" if negated else f"{first}{rest}"
    if negated:
        return f"{'does' if one else 'do'} not {_base(first)}{rest}"
    return f"{first if one else _base(first)}{rest}"


def verb_of(label: str) -> tuple[str, str, str]:
    """Return the verb, the words after it, and its form: "be", a verb, a participle, or before a noun."""
    words = label_of(label).split()
    first, rest = words[0], "".join(f" {word}" for word in words[1:])
    if first in ("is", "are", "was", "were"):
        return "is", " a kind of" if rest == " a" else rest, "be"
    if first in PAST:
        return first, rest, "past"
    if PRESENT.fullmatch(first) and rest.endswith(PREPOSITIONS):
        return plural(first), rest, "verb"
    if first in ("has", "have", "can") or (first.endswith("s") and singular(first) != first):
        return ("has" if first == "have" else first), rest, "verb"
    if f" {first}{rest}".endswith(PREPOSITIONS):
        return "is", f" {first}{rest}", "be"
    return "has", f" {first}{rest}", "noun"


def without_kind(label: str, kind: str) -> str:
    """Return a relation without the type at its end: has_phenotype → "has". A relation that is a type is a noun."""
    words = label_of(label)
    if words in (kind, plural(kind)):
        return kind
    bare = words.removesuffix(f" {kind}").removesuffix(f" {plural(kind)}")
    is_verb = bare.endswith(PREPOSITIONS) or verb_of(bare)[2] in ("verb", "past")
    return bare if is_verb and bare not in ("is", "can") else words


def _base(verb: str) -> str:
    """Return the plural of a verb."""
    irregular = {"has": "have", "does": "do", "goes": "go", "can": "can", "do": "do"}
    if verb in irregular or not verb.endswith("s"):
        return irregular.get(verb, verb)
    if verb.endswith("ies") and len(verb) > len("lies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("sses", "ches", "shes", "xes")) else verb[:-1]
