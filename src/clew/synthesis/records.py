"""A finished question as one line of JSON."""

from __future__ import annotations

from typing import Any

from clew.core.types import NodeSet, Path
from clew.kb.protocol import KnowledgeBase
from clew.synthesis.filtering import Verdict
from clew.synthesis.fusion import Draft, Wording
from clew.synthesis.requirement import gold_paths, query_to_json
from clew.synthesis.textual import TextualRequirement


def rejection(reason: str, gold_passed: bool | None = None) -> dict[str, Any]:
    """A question that did not come about, and why."""
    return {"rejected": reason, "gold_passed": gold_passed}


def row_of(
    kb: KnowledgeBase,
    draft: Draft,
    text: TextualRequirement | None,
    verdict: Verdict | None,
    wording: Wording,
    answers: NodeSet,
) -> dict[str, Any]:
    """Question and answers as `clew eval` reads them, and everything they were made from."""
    requirement = draft.requirement
    keys = {node: kb.refs([node])[0].key for node in {*requirement.candidates, *answers}}
    query = requirement.query
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
        "query": query_to_json(query),
        "query_text": str(query),
        "relational_set": [keys[node] for node in requirement.candidates],
        "gold": keys[draft.gold],
        "paths": {keys[node]: [_path(path) for path in found] for node, found in paths.items()},
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


def _path(path: Path) -> list[list[str]]:
    return [[fact.head.key, fact.relation, fact.tail.key] for fact in path.facts]


def _text(text: TextualRequirement) -> dict[str, Any]:
    rows = [
        {"text": one.text, "source": one.source} | ({} if one.start is None else {"start": one.start, "end": one.end})
        for one in text.properties
    ]
    return {"how": text.how, "properties": rows}
