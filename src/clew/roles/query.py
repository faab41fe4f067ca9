"""Reading a question as a query of any form by a model that is large enough: the prompt shows the whole schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.core import trace
from clew.core.roles import Parse
from clew.core.schema import NodeType, Schema
from clew.models.prompts import Prompt
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, ask
from clew.roles.parse import COMPARISONS, describe_relations, object_schema
from clew.roles.triplet_replies import read_query, salvage_query

PROMPT = Prompt.load("clew.roles.prompts", "query")
MOST_VALUES, LONGEST_VALUE = 12, 30
"""Of a category, values that are shown."""


@dataclass(frozen=True)
class ModelQueryParser:
    """Asks a model for a query; None where its reply cannot be used, which the trace says."""

    model: LanguageModel
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The values of attributes that have but few."""

    def parse(self, question: str, schema: Schema) -> Parse | None:
        """The query in the model's reply, checked against the schema."""
        filled = PROMPT.fill(
            question=question,
            types="\n".join(self._type(kind, schema) for kind in schema.node_types),
            relations=describe_relations(schema, question, self.model.context_tokens // 2),
        )

        def read(completion: Completion) -> Parse:
            return read_query(completion.text, question, schema)

        def salvage(completion: Completion) -> Parse:
            return salvage_query(completion.text, question, schema)

        asked = Ask(filled, read, salvage=salvage, schema=reply_schema(schema), max_tokens=900)
        [outcome] = ask(self.model, [asked], role="parse")
        if outcome.value is None:
            trace.fallback("parse", outcome.problem or "no reply", "read without the model")
        return outcome.value

    def _type(self, kind: NodeType, schema: Schema) -> str:
        about = [text for text in (kind.label if kind.label != kind.name else "", kind.description) if text]
        line = f"- {kind.name}" + (f" ({'; '.join(about)})" if about else "")
        return line + "".join(f"\n    {self._attribute(name, schema)}" for name in kind.attributes)

    def _attribute(self, name: str, schema: Schema) -> str:
        values = [value for value in self.values.get(name, ()) if len(value) <= LONGEST_VALUE]
        shown = f": {', '.join(values[:MOST_VALUES])}{', …' if len(values) > MOST_VALUES else ''}" if values else ""
        return f"{name} ({schema.attribute_types.get(name, 'text')}){shown}"


def reply_schema(schema: Schema) -> dict[str, Any]:
    """The JSON schema of a reply: relations, types and attributes are among those that exist."""
    text, flag = {"type": "string"}, {"type": "boolean"}
    relation = {"enum": list(schema.relation_names)} if schema.relation_names else text
    triplet = object_schema({"head": text, "relation": relation, "tail": text})
    triplets = {"type": "array", "items": triplet}
    condition = object_schema(
        {
            "variable": text,
            "attribute": {"enum": list(schema.attribute_types)} if schema.attribute_types else text,
            "comparison": {"enum": COMPARISONS},
            "value": {"type": ["string", "number", "boolean"]},
        }
    )
    best = object_schema(
        {"most": flag, "attribute": text, "relation": text, "answer_is": {"enum": ["", "head", "tail"]}}
    )
    return object_schema(
        {
            "thinking": text,
            "answerable": flag,
            "asks": {"enum": ["list", "count", "yes_no", "value", "describe"]},
            "answer": text,
            "variables": {
                "type": "array",
                "items": object_schema({"name": text, "type": {"enum": list(schema.type_names)}}),
            },
            "triplets": triplets,
            "absent": triplets,
            "any_of": {"type": "array", "items": triplets},
            "conditions": {"type": "array", "items": condition},
            "among": {"type": "array", "items": text},
            "attribute": text,
            "best": {"anyOf": [best, {"type": "null"}]},
            "text": text,
        }
    )
