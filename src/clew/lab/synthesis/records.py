"""Rows of finished questions, and the checks that they must pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from clew.answering.queries.execution import execute
from clew.answering.queries.parsing import parse
from clew.core.errors import SourceError
from clew.core.query import AnyQuery
from clew.core.types import NodeRef, NodeSet
from clew.lab.synthesis.fusion import QuestionDraft, WordedQuestion
from clew.lab.synthesis.judging import Verdict
from clew.lab.synthesis.requirement import gold_paths
from clew.lab.synthesis.textual import TextualRequirement
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.tokens import normalise


def rejection(reason: str, gold_passed: bool | None = None) -> dict[str, Any]:
    """Return the result for a rejected question."""
    return {"rejected": reason, "gold_passed": gold_passed}


def row_of(
    kb: KnowledgeBase,
    draft: QuestionDraft,
    text: TextualRequirement | None,
    verdict: Verdict | None,
    wording: WordedQuestion,
    answers: NodeSet,
) -> dict[str, Any]:
    """Return a question and its answers in the format of `clew eval`, with everything they were made from."""
    requirement = draft.requirement
    keys = {node: kb.refs([node])[0].key for node in {*requirement.candidates, *answers}}
    paths = gold_paths(kb, requirement, answers)
    return {
        "question": wording.question,
        "answers": [keys[node] for node in answers],
        "type": requirement.template.kind,
        "topics": [ref.name for ref in requirement.entities.values()],
        "template": requirement.template.name,
        "metapath": str(requirement.template),
        "answer_type": requirement.template.target,
        "role": draft.role,
        "entities": [{"key": r.key, "name": r.name, "type": r.type} for r in requirement.entities.values()],
        "query": str(requirement.query),
        "relational_set": [keys[node] for node in requirement.candidates],
        "gold": keys[draft.gold],
        "paths": {
            keys[node]: [[[fact.head.key, fact.relation, fact.tail.key] for fact in path.facts] for path in found]
            for node, found in paths.items()
        },
        "textual": None if text is None else _text(text),
        "votes": {} if verdict is None else {keys[node]: votes for node, votes in verdict.votes.items()},
        "wording": {
            "how": wording.how,
            "relational": wording.relational,
            **({"draft": wording.draft} if wording.draft else {}),
            **({"problem": wording.problem} if wording.problem else {}),
        },
        "node_ids": answers.array.tolist(),
    }


def _text(text: TextualRequirement) -> dict[str, Any]:
    rows = [
        {"text": one.text, "source": one.source, "strength": one.strength}
        | ({} if one.start is None else {"start": one.start, "end": one.end})
        for one in text.properties
    ]
    return {"how": text.how, "properties": rows, "item": text.item, "negative": list(text.negative)}


Row = Mapping[str, Any]
GATES = (
    "the gold query gives exactly the relational set",
    "every answer is in the relational set",
    "at least one answer",
    "no answer is named in the question",
    "no question twice",
)


def leaks(question: str, names: Iterable[str]) -> bool:
    """Return whether a question contains one of these names as whole words."""
    said = f" {normalise(question)} "
    return any(folded and f" {folded} " in said for folded in map(normalise, names))


def names_of(kb: KnowledgeBase, node: int) -> tuple[str, ...]:
    """Return all names of a node."""
    content = kb.node(node)
    return (content.name, *content.aliases)


def violations(kb: KnowledgeBase, rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the ids of the questions that fail each check."""
    found: dict[str, list[str]] = {gate: [] for gate in GATES}
    seen: dict[str, str] = {}
    for row in rows:
        id_, question = row["id"], row["question"]
        query = _gold_query(row)
        stored = row.get("rows", [[row.get("value")]])
        relational = NodeSet.of([kb.find(key) for key in row["relational_set"]])
        answers = NodeSet.of([kb.find(key) for key in row["answers"]])
        is_form = "rows" in row or "value" in row
        failed = (
            gold_rows(kb, query) != stored if is_form else execute(kb, query).nodes != relational,
            bool(len(answers - relational)),
            not len(answers) and "value" not in row,
            any(leaks(question, names_of(kb, node)) for node in answers),
            seen.setdefault(normalise(question), id_) != id_,
        )
        for gate, fails in zip(GATES, failed, strict=True):
            if fails:
                found[gate].append(id_)
    return found


def gold_rows(kb: KnowledgeBase, query: AnyQuery) -> list[list[Any]]:
    """Return the rows of a query as JSON has them, nodes by their keys."""
    return [[_plain(cell) for cell in row] for row in execute(kb, query).rows]


def _plain(cell: Any) -> Any:
    if isinstance(cell, NodeRef):
        return cell.key
    return cell if cell is None or isinstance(cell, str | int | float | bool) else str(cell)


def _gold_query(row: Row) -> AnyQuery:
    if not isinstance(row["query"], str):
        raise SourceError(
            f"question {row['id']}: its query is not written in the query language: make the questions again"
        )
    return parse(row["query"])
