"""Translate a question into the query language with a model. The prompt shows the schema, and the reply is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clew.answering.queries.kinds import check
from clew.answering.queries.parsing import parse
from clew.answering.roles.parse import describe_relations, describe_type
from clew.core import trace
from clew.core.errors import InputError, ReplyError, SchemaError
from clew.core.query import AnyQuery, name_text
from clew.core.schema import NodeType, Schema
from clew.models.protocol import LanguageModel
from clew.models.structured import Ask, Prompt, TypedReply, ask, object_schema, read_json
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.protocol import Names

PROMPT = Prompt.load("clew.answering.roles.prompts", "query")
ALONE = 0.8
"""Certainty of results that only the model's query finds."""
BY_TEXT = 0.5
"""Certainty if the model states that texts contain the answer."""
MOST_VALUES, LONGEST = 12, 30
"""Maximum number of example values of an attribute, and maximum characters of a value or name."""
SAMPLES = 3
"""Number of example names of a type. A type with at most `MOST_VALUES` nodes is shown with all names."""
MOST_MENTIONS = 8
"""Maximum number of names in a question that are looked up for the model."""


class _Formulated(TypedReply):
    thinking: str = ""
    answerable: bool = True
    query: str = ""
    yes_no: bool = False
    text: str | None = ""


@dataclass(frozen=True, slots=True)
class Formulated:
    """A model's translation of a question."""

    query: AnyQuery | None
    """None if the model finds no answer, or if the question needs only a text search."""
    is_truth: bool = False
    text: str = ""
    """A requirement for the text search."""
    is_answerable: bool = True


SCHEMA = object_schema(
    {
        "thinking": {"type": "string"},
        "answerable": {"type": "boolean"},
        "query": {"type": "string"},
        "yes_no": {"type": "boolean"},
        "text": {"type": "string"},
    }
)


@dataclass(frozen=True)
class Formulator:
    """Asks a model for a query. Returns None and records a fallback if the replies cannot be used."""

    model: LanguageModel
    base: BaseDescription

    def formulate(self, question: str, remark: str = "") -> Formulated | None:
        """Return the query in the model's reply. `remark` describes the error in an earlier query."""
        schema = self.base.kb.schema
        shown = self.base.parts(question, self.model.context_tokens // 2)
        filled = PROMPT.fill(question=f"{question}\n{remark}" if remark else question, **shown)
        asked = Ask(filled, lambda completion: read_reply(completion.text, schema), schema=SCHEMA, max_tokens=900)
        [outcome] = ask(self.model, [asked], role="parse")
        if outcome.value is None:
            trace.fallback("parse", outcome.problem or "no reply", "read without the model")
        return outcome.value


@dataclass(frozen=True)
class BaseDescription:
    """Describes a base to a model."""

    kb: KnowledgeBase
    names: Names
    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Values of attributes that have few different values."""

    def parts(self, question: str, tokens: int) -> dict[str, str]:
        """Return the parts of a prompt that show the base: types, relations within `tokens`, names in the question."""
        schema = self.kb.schema
        return {
            "types": "\n".join(map(self._type, schema.node_types)),
            "relations": describe_relations(schema, question, tokens, name_text) + self._edges(),
            "names": self._names(question),
        }

    def _type(self, kind: NodeType) -> str:
        nodes = self.kb.nodes(kind.name).array
        few = len(nodes) if len(nodes) <= MOST_VALUES else SAMPLES
        picked = nodes[:: max(1, len(nodes) // max(1, few))][:few] if self.kb.described is not None else nodes[:0]
        names = [ref.name for ref in self.kb.refs(picked) if len(ref.name) <= LONGEST]
        shown = f"{':' if len(names) == len(nodes) else ', such as'} {'; '.join(names)}" if names else ""
        attributes = "".join(f"\n    {self._attribute(name)}" for name in kind.attributes)
        return f"{describe_type(kind, name_text)} [{kind.count:,}{shown}]{attributes}"

    def _names(self, question: str) -> str:
        """Describe the nodes that the question may name, so that the query has their names and types."""
        shown = []
        for one in self.names.mentions(question)[:MOST_MENTIONS]:
            refs = self.kb.refs([link.node for link in one.links[:SAMPLES]])
            named = dict.fromkeys(f'"{ref.name}": {name_text(ref.type)}' for ref in refs)
            shown.append(f"- {one.text}: {', '.join(named)}")
        return "\n\nNames in the question that the knowledge base may have:\n" + "\n".join(shown) if shown else ""

    def _edges(self) -> str:
        kinds = self.kb.schema.edge_attributes
        shown = ", ".join(f"{name_text(name)} ({kind})" for name, kind in kinds.items())
        return f"\nAttributes that edges may have: {shown}" if shown else ""

    def _attribute(self, name: str) -> str:
        values = [value for value in self.values.get(name, ()) if len(value) <= LONGEST]
        shown = f": {', '.join(values[:MOST_VALUES])}{', …' if len(values) > MOST_VALUES else ''}" if values else ""
        return f"{name_text(name)} ({self.kb.schema.attribute_types.get(name, 'text')}){shown}"


def read_reply(text: str, schema: Schema) -> Formulated:
    """Return the query of a reply. Raise ReplyError if it is invalid."""
    reply = read_json(text, _Formulated)
    said = (reply.text or "").strip()
    if not reply.answerable:
        return Formulated(None, is_answerable=False)
    if not reply.query.strip():
        if not said:
            raise ReplyError("the reply has neither a query nor a text")
        return Formulated(None, text=said)
    try:
        query = parse(reply.query)
        check(query, schema)
    except (InputError, SchemaError) as error:
        raise ReplyError(f"the query cannot be used: {error}") from error
    return Formulated(query, reply.yes_no, said)
