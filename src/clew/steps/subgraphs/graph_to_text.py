"""A subgraph in words: Salnikov et al., deterministic Graph2Text (algorithm 2), and highlight (section 4.4)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from clew.kb.protocol import KnowledgeBase
from clew.steps.subgraphs.subgraph import Subgraph

HIGHLIGHT = ("[unused1]", "[unused2]")
"""Tokens a sentence encoder has no meaning for yet: a fine-tuned ranker learns that they mark the candidate."""


def triples_in_words(kb: KnowledgeBase, subgraph: Subgraph) -> list[tuple[str, str, str]]:
    """Head, relation and tail by name: row by row over the labelled adjacency matrix, question entities first."""
    labels = relation_labels(kb)
    names = [ref.name for ref in kb.refs(subgraph.nodes)]
    heads, tails = subgraph.ends
    rows = sorted(zip(heads.tolist(), tails.tolist(), subgraph.edges.relations.tolist(), strict=True))
    return [(names[head], labels[kb.schema.relation_names[code]], names[tail]) for head, tail, code in rows]


def relation_labels(kb: KnowledgeBase) -> Mapping[str, str]:
    """How people call each relation."""
    return {relation.name: relation.label for relation in reversed(kb.schema.relations)}


def linearize(kb: KnowledgeBase, subgraph: Subgraph) -> str:
    """`head, relation, tail; head, relation, tail; …`; the names of the lone nodes where nothing is connected."""
    triples = triples_in_words(kb, subgraph)
    if not triples:
        return "; ".join(ref.name for ref in kb.refs(subgraph.nodes))
    return "; ".join(", ".join(triple) for triple in triples)


def highlight(text: str, name: str) -> str:
    """Every whole occurrence of the candidate's name between two marks; the marked name first where it is missing."""
    opening, closing = HIGHLIGHT
    marked, found = re.subn(
        rf"(?<!\w){re.escape(name)}(?!\w)", lambda match: f"{opening}{match[0]}{closing}", text, flags=re.IGNORECASE
    )
    return marked if found else f"{opening}{name}{closing}; {text}"
