"""Parse a question into triplets with a model. The prompt shows the schema, and the reply is checked against it.

This is step 1 of 4StepFocus: the model sees the question, all node types and all relations, and returns triplets and
the target variable. Deviation from the paper: structured JSON instead of text split at commas. Large models are asked
for a query of any form instead (formulate.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from clew.answering.roles.triplet_replies import ORDERED, RARE_PAIR, read_triplets, salvage_triplets
from clew.core import trace
from clew.core.roles import Interpretation, Parse, Parser
from clew.core.schema import NodeType, Relation, Schema
from clew.models.protocol import LanguageModel
from clew.models.structured import Ask, Prompt, ask, object_schema
from clew.models.tokens import count_tokens
from clew.store.index.tokens import terms

PROMPT = Prompt.load("clew.answering.roles.prompts", "parse")


@dataclass(frozen=True)
class ModelParser:
    """Asks a model. If its reply cannot be used, the fallback parser parses the question."""

    model: LanguageModel
    fallback: Parser | None = None

    def parse(self, question: str, schema: Schema) -> Parse:
        """Return the query in the model's reply, checked against the schema."""
        return self.parse_all([question], schema)[0]

    def parse_all(self, questions: Sequence[str], schema: Schema) -> list[Parse]:
        """Parse several questions as one batch."""
        outcomes = ask(self.model, [self._ask(question, schema) for question in questions], role="parse")
        return [
            outcome.value or self._fall_back(question, schema, outcome.problem or "no reply")
            for question, outcome in zip(questions, outcomes, strict=True)
        ]

    def _ask(self, question: str, schema: Schema) -> Ask[Parse]:
        room = self.model.context_tokens // 2
        filled = PROMPT.fill(
            question=question,
            types="\n".join(map(describe_type, schema.node_types)),
            relations=describe_relations(schema, question, room),
            attributes=describe_attributes(schema),
            no_conditions=', "conditions": []' if schema.attribute_types else "",
        )
        return Ask(
            filled,
            lambda completion: read_triplets(completion.text, question, schema),
            salvage=lambda completion: salvage_triplets(completion.text, question, schema),
            schema=reply_schema(schema),
            max_tokens=400,
        )

    def _fall_back(self, question: str, schema: Schema, problem: str) -> Parse:
        if self.fallback is None:
            trace.fallback("parse", problem, "no requirement is taken from the question")
            return Parse(Interpretation.of_text(question), problem=problem)
        trace.fallback("parse", problem, f"parsed by {type(self.fallback).__name__}")
        parse = self.fallback.parse(question, schema)
        return Parse(parse.interpretation, parse.alternatives, parse.rejected, problem)


def describe_type(kind: NodeType, written: Callable[[str], str] = str) -> str:
    """Return the written name of a type, with its label and description."""
    about = [text for text in (kind.label if kind.label != kind.name else "", kind.description) if text]
    return f"- {written(kind.name)}" + (f" ({'; '.join(about)})" if about else "")


def describe_relations(schema: Schema, question: str, tokens: int, written: Callable[[str], str] = str) -> str:
    """Return one line per relation and pair of types. If they do not fit, select by the words of the question."""
    total: dict[str, int] = {}
    for relation in schema.relations:
        total[relation.name] = total.get(relation.name, 0) + relation.count
    rows = [relation for relation in schema.relations if relation.count >= RARE_PAIR * total[relation.name]]
    lines = [_describe(relation, written) for relation in rows]
    if sum(map(count_tokens, lines)) <= tokens:
        return "\n".join(lines)
    asked = set(terms(question))
    order = sorted(range(len(rows)), key=lambda place: (-len(asked & set(terms(lines[place]))), -rows[place].count))
    kept, left = set(), tokens
    for place in order:
        cost = count_tokens(lines[place])
        if cost <= left:
            kept.add(place)
            left -= cost
    trace.fallback("parse", f"{len(rows)} relations do not fit the model's context", f"{len(kept)} are shown")
    return "\n".join(lines[place] for place in sorted(kept))


def _describe(relation: Relation, written: Callable[[str], str]) -> str:
    about = [relation.label] if relation.label != relation.name.replace("_", " ") else []
    about += [f"read backwards: {relation.inverse}"] if relation.inverse else []
    about += [relation.description] if relation.description else []
    head, name, tail = map(written, (relation.head, relation.name, relation.tail))
    shown = f"- {head} -> {name} -> {tail}"
    return shown + (f" ({'; '.join(about)})" if about else "")


def describe_attributes(schema: Schema) -> str:
    """Describe the attributes that conditions may use. Empty if there are none."""
    if not schema.attribute_types:
        return ""
    shown = ", ".join(f"{name} ({kind})" for name, kind in schema.attribute_types.items())
    name, kind = next(iter(schema.attribute_types.items()))
    example = '"comparison": ">=", "value": 3' if kind in ORDERED else '"comparison": "contains", "value": "blue"'
    return (
        f"\nAttributes: {shown}\n"
        f'"conditions" holds requirements on them where the question makes any, such as {{"variable": "?x", '
        f'"attribute": "{name}", {example}}}.\n'
    )


def reply_schema(schema: Schema) -> dict[str, Any]:
    """Return the JSON schema of a reply. It allows only existing relations and types."""
    text = {"type": "string"}
    # A triplet is an object, not an array: the grammars of small servers cannot restrict the values of the second item.
    triplet = object_schema({"head": text, "relation": {"enum": list(schema.relation_names)}, "tail": text})
    variable = object_schema({"name": text, "type": {"enum": list(schema.type_names)}})
    parts: dict[str, Any] = {
        "names": {"type": "array", "items": text},  # first: small models forget names unless they write them down
        "answer": text,
        "variables": {"type": "array", "items": variable},
        "triplets": {"type": "array", "items": triplet},
        "absent": {"type": "array", "items": triplet},
    }
    if schema.attribute_types:
        condition = condition_schema({"enum": list(schema.attribute_types)})
        parts["conditions"] = {"type": "array", "items": condition}
    return object_schema(parts)


def condition_schema(attribute: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a condition."""
    return object_schema(
        {
            "variable": {"type": "string"},
            "attribute": attribute,
            "comparison": {"enum": ["=", "!=", "<", "<=", ">", ">=", "contains"]},
            "value": {"type": ["string", "number", "boolean"]},
        }
    )


SURE = 0.6
"""Minimum certainty of a reading. Below it, the model parses the question."""


@dataclass(frozen=True)
class ReaderFirst:
    """Parses with the learned reader, and with a model if the reader is not sure."""

    reader: Parser
    model: Parser

    def parse(self, question: str, schema: Schema) -> Parse:
        """Return the reader's query if it is certain and has requirements. Otherwise return the model's query."""
        parse = self.reader.parse(question, schema)
        is_sure = parse.interpretation.is_restricted and (parse.certainty is None or parse.certainty >= SURE)
        return parse if is_sure else self.model.parse(question, schema)
