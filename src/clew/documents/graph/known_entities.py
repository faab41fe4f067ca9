"""Links from passages to the nodes of an existing knowledge base that they mention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from clew.core.types import NodeSet
from clew.index.terms import stop_words
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.tables import Piece
from clew.steps.language.phrase_matcher import PhraseMatcher

SHORTEST = 3
STRING = pa.large_string()


@dataclass(frozen=True, eq=False)
class KnownEntities:
    """The mentioned nodes, the mentions, and the edges that the base has between mentioned nodes."""

    nodes: Piece
    edges: tuple[Piece, ...]


def known_entities(base: Path, texts: Sequence[str], keys: pa.Array) -> KnownEntities | None:
    """Find the names and aliases of a base in passages; None where none of them occurs."""
    kb = ArrayKnowledgeBase.open(base)
    columns = kb.columns()
    names: PhraseMatcher[int] = PhraseMatcher()
    written = zip(columns["name"].to_pylist(), columns["aliases"].to_pylist(), strict=True)
    for node, (name, aliases) in enumerate(written):
        for form in (name, *(aliases or ())):
            if len(form) >= SHORTEST and form.lower() not in stop_words():
                names.add(form, node)
    heads, tails = [], []
    for place, text in enumerate(texts):
        found = {node for match in names.find(text) for node in match.meanings if _meant(text[match.start : match.end])}
        heads += [place] * len(found)
        tails += sorted(found)
    if not tails:
        return None
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
    return KnownEntities(Piece(nodes, str(base)), tuple(pieces))


def _meant(written: str) -> bool:
    """Short words are names only where they are written as names."""
    return len(written) > 4 or not written.islower()
