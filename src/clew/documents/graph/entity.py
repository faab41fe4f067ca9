"""Edges between passages that mention the same names: titles, shared names, nodes of a base."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from clew.core.proper_names import PhraseMatcher, acronyms, matcher, name_key, proper_names, subject, title_forms
from clew.core.types import NodeSet
from clew.documents.graph.edges import EdgeOptions, PassageEdges, most_shared
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.tables import STRING, Piece, Tables
from clew.store.group_views import view_for
from clew.store.index.tokens import stop_words

MAX_MEANINGS = 10
"""Maximum number of titles of a form. More ambiguous forms create no edges."""
USABLE = 0.2
"""Minimum share of texts that contain their own title. Below it, titles are not names of things."""


def mention_edges(
    texts: Sequence[str], owners: Sequence[Sequence[int]], titles: Sequence[tuple[str, int]]
) -> PassageEdges:
    """Connect passages to the targets whose title they contain, except their own targets."""
    known = matcher((form, target) for title, target in titles for form in title_forms(title))
    heads: list[int] = []
    tails: list[int] = []
    because: list[str] = []
    for index, (text, own) in enumerate(zip(texts, owners, strict=True)):
        seen: dict[int, str] = {}
        for match in known.find(text, capitalised=True):
            if len(match.meanings) <= MAX_MEANINGS:
                for target in match.meanings:
                    if target not in own:
                        seen.setdefault(target, " ".join(text[match.start : match.end].split()))
        heads += [index] * len(seen)
        tails += seen.keys()
        because += seen.values()
    ends = np.array([heads, tails], dtype=np.int32).reshape(2, -1)
    return PassageEdges("mentions", ends[0], ends[1], np.ones(len(heads), dtype=np.float32), because)


def subjects(titles: Sequence[str], texts: Sequence[str]) -> list[tuple[str, int]]:
    """Return the subject in the first words of each text, or no subjects if titles are usable."""
    lower = [text.casefold() for text in texts]
    written = sum(
        any(form.casefold() in text for form in title_forms(title)) for title, text in zip(titles, lower, strict=True)
    )
    if written >= USABLE * len(texts):
        return []
    found = ((subject(text), place) for place, text in enumerate(texts))
    return [(name, place) for name, place in found if name is not None]


OF_THE_DOCUMENT = re.compile(r"(tables?|figures?|fig|pages?|sections?|chapters?|equations?|appendix)( [a-z]?\d+)?$")
"""Capitalised names of parts of the document."""


def entity_edges(texts: Sequence[str], documents: Sequence[int], options: EdgeOptions) -> PassageEdges:
    """Connect passages by rare shared names. `documents` gives the document of each passage, to resolve acronyms."""
    surface: dict[str, Counter[str]] = {}
    places, names = [], []
    numbers: dict[str, int] = {}
    explained = _explained(texts, documents)
    for index, (text, document) in enumerate(zip(texts, documents, strict=True)):
        for key, name in _named(text, explained.get(document, {})):
            surface.setdefault(key, Counter())[name] += 1
            places.append(index)
            names.append(numbers.setdefault(key, len(numbers)))
    columns = np.array([places, names], dtype=np.int32).reshape(2, -1)
    counts = np.bincount(columns[1], minlength=len(numbers))
    useful = (counts >= 2) & (counts <= options.most_passages)
    weights = np.where(useful, 1 / np.log1p(np.maximum(counts, 1)), 0).astype(np.float32)
    kept = useful[columns[1]]
    heads, tails, totals, because = most_shared(
        columns[0][kept], columns[1][kept], weights, len(texts), options.neighbours
    )
    written = [min(forms.items(), key=lambda form: (-form[1], form[0]))[0] for forms in surface.values()]
    return PassageEdges("entity", heads, tails, totals, [written[number] for number in because.tolist()])


def _named(text: str, expansions: dict[str, str]) -> Iterable[tuple[str, str]]:
    """Return each name of a text once, as key and written form. Acronyms use their expansion."""
    found: dict[str, str] = {}
    for name in proper_names(text):
        whole = expansions.get(name.text, name.text)
        key = name_key(whole)
        if len(key) > 2 and not OF_THE_DOCUMENT.match(key):
            found.setdefault(key, " ".join(whole.split()))
    return found.items()


def _explained(texts: Sequence[str], documents: Sequence[int]) -> dict[int, dict[str, str]]:
    explained: dict[int, dict[str, str]] = {}
    for text, document in zip(texts, documents, strict=True):
        if "(" in text and (found := acronyms(text)):
            explained.setdefault(document, {}).update(found)
    return explained


SHORTEST = 3
"""Minimum characters of a name to search for. Shorter names occur by chance."""


def known_entities(base: Path, texts: Sequence[str], keys: pa.Array) -> Tables:
    """Find the names and aliases of a base in passages.

    Return the mentioned nodes, the mentions, and the edges of the base between mentioned nodes. Skip nodes restricted
    to groups, since their texts would become public with the documents.
    """
    kb = ArrayKnowledgeBase.open(view_for(ArrayKnowledgeBase.open(base), ()) or base)
    columns = kb.columns()
    names: PhraseMatcher[int] = PhraseMatcher()
    written = zip(columns["name"].to_pylist(), columns["aliases"].to_pylist(), strict=True)
    for node, (name, aliases) in enumerate(written):
        for form in (name, *(aliases or ())):
            if len(form) >= SHORTEST and form.lower() not in stop_words():
                names.add(form, node)
    heads, tails = [], []
    for index, text in enumerate(texts):
        found = {node for match in names.find(text) for node in match.meanings if _meant(text[match.start : match.end])}
        heads += [index] * len(found)
        tails += sorted(found)
    if not tails:
        return Tables((), ())
    mentioned = NodeSet.of(tails)
    rows = columns.take(pa.array(mentioned.array))
    types = [kb.type_of(node) for node in mentioned]
    nodes = pa.table({name: rows[name] for name in ("key", "name", "aliases", "text")}).append_column(
        "type", pa.array(types, STRING)
    )
    links = pa.table(
        {
            "head": keys.take(pa.array(heads, pa.int64())),
            "relation": pa.repeat(pa.scalar("mentions", STRING), len(heads)),
            "tail": columns["key"].take(pa.array(tails, pa.int64())),
        }
    )
    pieces = [Piece(links, str(base))]
    edges = kb.edges(mentioned, direction="out")
    inside = np.isin(edges.tails, mentioned.array)
    if inside.any():
        relations = [kb.schema.relation_names[code] for code in edges.relations[inside].tolist()]
        own = {
            "head": columns["key"].take(pa.array(edges.heads[inside])),
            "relation": pa.array(relations, STRING),
            "tail": columns["key"].take(pa.array(edges.tails[inside])),
        }
        pieces.append(Piece(pa.table(own), str(base)))
    return Tables((Piece(nodes, str(base)),), tuple(pieces))


def _meant(written: str) -> bool:
    """Return whether a match is a name. Short words must be capitalised."""
    return len(written) > 4 or not written.islower()
