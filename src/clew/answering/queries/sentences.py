"""What is said without a model: an answer in a sentence, "3 drugs match: A, B and C.", and a node in a few."""

from __future__ import annotations

from collections import Counter

from clew.answering.queries.wording import kind_in_words, value_in_words
from clew.core.nouns import plural
from clew.core.schema import words_of
from clew.core.types import Answer, Candidate, Fact, Judgement, NodeSet, Path, Value
from clew.store.graph.protocol import KnowledgeBase

LISTED = 5
"""Of more answers than this the first are named and the others counted."""


def sentence(answer: Answer) -> str:
    """What is put forward, or that nothing is, from what the answer holds; ends with a full stop."""
    understood = answer.query.get("text")
    if not answer.found:
        return "I did not find this." + (f" I understood: {understood}." if understood else "")
    if isinstance(answer.value, bool):
        return _truth(answer, answer.value)
    if answer.value is not None:
        return _value(answer, answer.value)
    if not answer.matches:
        return f"Ranked by what is written about them, nothing was checked: {_listed(answer.candidates)}."
    named, count = _listed(answer.matches), len(answer.matches)
    if answer.query.get("form") in ("superlative", "comparison"):
        return f"{named}{_compared(answer.matches[0])}."
    return f"{_counted(answer, count)} {'matches' if count == 1 else 'match'}{_directly(answer)}: {named}."


def _truth(answer: Answer, is_so: bool) -> str:
    if not is_so:
        return "No: nothing in the base says so."
    pieces = answer.candidates[0].evidence if answer.candidates else ()
    shown = next((piece.in_words() for piece in pieces if isinstance(piece, Fact | Path)), None)
    return f"Yes: {shown}." if shown else "Yes."


def _value(answer: Answer, value: Value) -> str:
    if answer.query.get("form") == "count":
        named = f": {_listed(answer.matches)}" if answer.matches else ""
        return f"{_counted(answer, int(value))}{_directly(answer)}{named}."
    attribute = answer.query.get("attribute")
    if attribute and answer.matches:
        return f"The {attribute} of {_listed(answer.matches)} is {value_in_words(value)}."
    return f"{value_in_words(value)}."


def _counted(answer: Answer, count: int) -> str:
    kind = str(answer.query.get("kind", "thing"))
    return f"{count:,} {kind if count == 1 else plural(kind)}"


def _directly(answer: Answer) -> str:
    """How many match by themselves, where others do by what lies below a name in a hierarchy."""
    direct = answer.query.get("direct", len(answer.matches))
    return f" ({direct:,} directly)" if direct < len(answer.matches) else ""


def _compared(best: Candidate) -> str:
    """By what it was compared: the attribute's value, which the evidence has."""
    told = [piece for piece in best.evidence if isinstance(piece, Judgement) and piece.by not in ("query", "document")]
    if not told or not told[0].reason:
        return ""
    return f" ({told[0].reason})" if told[0].by == "count" else f" ({told[0].by.replace('_', ' ')} {told[0].reason})"


def _listed(candidates: tuple[Candidate, ...]) -> str:
    """The first names, how often each where several bear it, and how many more there are."""
    times = Counter(candidate.node.name for candidate in candidates)
    named = dict(list(times.items())[:LISTED])
    names = [name if often == 1 else f"{name} ({often} times)" for name, often in named.items()]
    more = len(candidates) - sum(named.values())
    if more > 0:
        names.append(f"{more:,} more")
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


ATTRIBUTES, RELATIONS, NAMES = 6, 6, 3
"""How much of a node is described: attributes, relations, and names behind a relation."""
LONGEST = 300
"""Characters of its text that are told."""


def description(kb: KnowledgeBase, node: int) -> str:
    """What a base knows about a node."""
    content = kb.node(node)
    kind = kind_in_words(kb.schema, content.type)
    told = [f"{content.name} is {'an' if kind[:1] in 'aeiou' else 'a'} {kind}."]
    written = " ".join(content.text.split())
    if written:
        told.append(written if len(written) <= LONGEST else f"{written[:LONGEST].rsplit(' ', 1)[0]} …")
    values = [
        f"{words_of(name)} {value_in_words(value)}"
        for name, value in content.attributes.items()
        if isinstance(value, int | float | str) and value != ""
    ]
    parts = ["; ".join(values[:ATTRIBUTES])] if values else []
    here = NodeSet.of([node])
    uses = sorted(kb.relations(here), key=lambda use: (use.direction != "out", use.count))
    for use in uses[:RELATIONS]:
        others = kb.neighbors(here, use.relation, use.direction)
        named = [ref.name for ref in kb.refs(others.array[:NAMES])]
        more = f" and {len(others) - NAMES:,} more" if len(others) > NAMES else ""
        label = words_of(use.relation) if use.direction == "out" else f"{words_of(use.relation)} of"
        parts.append(f"{label}: {', '.join(named)}{more}")
    return " ".join([*told, *(f"{part[:1].upper()}{part[1:]}." for part in parts)])
