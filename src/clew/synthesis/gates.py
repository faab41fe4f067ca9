"""Quality gates: what must hold of every finished question, checked on what is about to be written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.core.types import NodeRef, NodeSet
from clew.index.tokens import normalise
from clew.kb.protocol import KnowledgeBase
from clew.synthesis.requirement import execute, query_from_json

Row = Mapping[str, Any]
GATES = (
    "the gold query gives exactly the relational set",
    "every answer is in the relational set",
    "at least one answer",
    "no answer is named in the question",
    "no question twice",
)


def leaks(question: str, names: Iterable[str]) -> bool:
    """Whether a question says one of these names, as words of its own."""
    said = f" {normalise(question)} "
    return any(folded and f" {folded} " in said for folded in map(normalise, names))


def names_of(kb: KnowledgeBase, node: int) -> tuple[str, ...]:
    """Every name of a node."""
    content = kb.node(node)
    return (content.name, *content.aliases)


def violations(kb: KnowledgeBase, rows: Sequence[Row]) -> dict[str, list[str]]:
    """For each gate the ids of the questions that fail it."""
    found: dict[str, list[str]] = {gate: [] for gate in GATES}
    seen: dict[str, str] = {}
    for row in rows:
        id_, question = row["id"], row["question"]
        named = [(kb.find(one["key"]), one) for one in row["entities"]]
        entities = {one["key"]: NodeRef(node, one["key"], one["name"], one["type"]) for node, one in named}
        executed = execute(kb, query_from_json(row["query"]), entities).target
        relational = NodeSet.of([kb.find(key) for key in row["relational_set"]])
        answers = NodeSet.of([kb.find(key) for key in row["answers"]])
        failed = (
            executed is None or executed != relational,
            bool(len(answers - relational)),
            not len(answers),
            any(leaks(question, names_of(kb, node)) for node in answers),
            seen.setdefault(normalise(question), id_) != id_,
        )
        for gate, fails in zip(GATES, failed, strict=True):
            if fails:
                found[gate].append(id_)
    return found
