"""Example questions derived from the content of a base."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import chain, islice, zip_longest

from clew.answering.queries.words import asked_of, kind_in_words
from clew.core.nouns import plural
from clew.core.types import NodeSet
from clew.store.open_base import OpenBase

PATH = " › "
"""Separator of document title and headings in the name of a passage."""
NUMBER = re.compile(r"^(\d+\.)*\d*\.?\s+")
LONGEST = 60
"""Maximum characters of a heading or title in an example question."""
LOOKED_AT = 2000
"""Number of passages whose headings are tried."""


def examples(tools: OpenBase, most: int = 4) -> tuple[str, ...]:
    """Return questions that fit the base."""
    is_text = tools.kb.schema.holds_passages
    return tuple(_about_documents(tools, most) if is_text else _about_relations(tools, most))


def _about_documents(tools: OpenBase, most: int) -> list[str]:
    """Build questions from headings, alternating between documents, headings that are questions first."""
    kb = tools.kb
    passages = kb.nodes("passage").array.tolist() if "passage" in kb.schema.type_names else []
    headings: dict[str, dict[str, None]] = {}
    for ref in kb.refs(random.Random(7).sample(passages, min(LOOKED_AT, len(passages)))):
        title, *below = ref.name.split(PATH)
        headings.setdefault(title, {}).update(dict.fromkeys(map(_plain, below[-1:])))
    asked = {
        title: sorted(_asked(title, list(own)), key=lambda text: "say about" in text) for title, own in headings.items()
    }
    found = chain.from_iterable(zip_longest(*asked.values()))
    return list(islice((text for text in found if text is not None), most))


def _asked(title: str, headings: list[str]) -> Iterator[str]:
    """Yield questions about one document, or about its subject if no heading has two words."""
    telling = [one for one in headings if len(one) <= LONGEST and len(re.findall(r"[^\W\d_]{3,}", one)) >= 2]
    for heading in telling:
        yield heading if heading.endswith("?") else f"What does {title} say about {heading}?"
    if not telling and len(title) <= LONGEST:
        yield f"What is {title} about?"


def _plain(heading: str) -> str:
    """Remove the number and the full stop of a heading."""
    return NUMBER.sub("", heading).rstrip(" .:!")


def _about_relations(tools: OpenBase, most: int) -> list[str]:
    """Build questions from relations and names of nodes."""
    kb, seed = tools.kb, random.Random(7)
    rows = sorted(kb.schema.relations, key=lambda row: -row.count)
    asked: list[str] = []
    for row in rows:
        if row.head not in kb.schema.answer_types or row.head == row.tail:
            continue
        tails = kb.nodes(row.tail).array
        for tail in seed.sample(tails.tolist(), min(200, len(tails))):
            heads = kb.neighbors(NodeSet.of([tail]), row.name, "in")
            name = kb.refs([tail])[0].name
            if 2 <= len(heads) <= 60 and len(name) < 50:
                kind = plural(kind_in_words(kb.schema, row.head))
                asked.append(f"Which {kind} {asked_of(kb.schema, row, name)}?")
                break
        if len(asked) == most:
            break
    return asked
