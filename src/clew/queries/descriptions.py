"""A node in a few sentences: what it is, what is written about it, its attributes and what it is connected with."""

from __future__ import annotations

from clew.core.schema import words_of
from clew.core.types import NodeSet
from clew.kb.protocol import KnowledgeBase
from clew.queries.wording import kind_in_words, value_in_words

ATTRIBUTES, RELATIONS, NAMES = 6, 6, 3
"""So many of each are told."""
LONGEST = 300
"""Characters of its text."""


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
