"""Step 2 with a model: properties of the gold node by role, each held against the node's text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from clew.core import trace
from clew.core.types import NodeSet
from clew.lab.synthesis.fusion import Draft, instruction
from clew.lab.synthesis.records import leaks, names_of
from clew.lab.synthesis.textual import Property, TextualRequirement, distinctive_phrase, fields, written
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, ask, read_json
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.lexical import LexicalIndex
from clew.store.index.tokens import terms


@dataclass(frozen=True)
class PhraseExtractor:
    """Distinctive phrases of the gold nodes' texts."""

    kb: KnowledgeBase
    lexical: LexicalIndex
    name: str = "distinctive phrases"

    def extract(self, drafts: Sequence[Draft]) -> list[TextualRequirement | None]:
        """One phrase per draft that wants one."""
        return [self._one(draft) if draft.with_text else None for draft in drafts]

    def _one(self, draft: Draft) -> TextualRequirement | None:
        others = draft.requirement.possible - NodeSet.of([draft.gold])
        return distinctive_phrase(self.kb, self.lexical, draft.gold, others, draft.rng("textual"))


Said = TypeVar("Said")
EXTRACT, EXTRACT_PRODUCT = (Prompt.load("clew.lab.synthesis.prompts", name) for name in ("extract", "extract_product"))
MOST = 3
"""Properties a model is asked for."""
MOST_OF_A_STRENGTH = 5
"""Hard requirements a model is asked for, and soft ones: the paper's."""
TAKEN = 2
"""Properties a question has at most."""
LEAST_SHARED = 0.34
"""The share of a property's words that must stand in the text; whether it follows from it, the judges decide."""
LONGEST_DOCUMENT = 6000
_LISTED: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"text": {"type": "string"}, "source": {"type": "string"}},
        "required": ["text", "source"],
        "additionalProperties": False,
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"properties": _LISTED},
    "required": ["properties"],
    "additionalProperties": False,
}
PRODUCT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "negative": _LISTED, "hard": _LISTED, "soft": _LISTED},
    "required": ["item", "negative", "hard", "soft"],
    "additionalProperties": False,
}


class _Property(BaseModel):
    model_config = ConfigDict(extra="ignore")
    text: str
    source: str = ""


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore")
    properties: list[_Property]


class _Product(BaseModel):
    model_config = ConfigDict(extra="ignore")
    item: str
    negative: list[_Property] = []
    hard: list[_Property] = []
    soft: list[_Property] = []


@dataclass(frozen=True)
class ModelExtractor:
    """Asks a model what the text says that somebody in a role would care about."""

    kb: KnowledgeBase
    model: LanguageModel
    trusting: bool = False
    """Whether properties are taken unchecked: for estimates only."""

    @property
    def name(self) -> str:
        """The model's."""
        return f"extracted by {self.model.name}"

    def extract(self, drafts: Sequence[Draft]) -> list[TextualRequirement | None]:
        """One requirement per draft that wants one; None where no property passed."""
        return _extracted(self.model, drafts, self._ask, self._taken)

    def _ask(self, draft: Draft) -> Ask[list[_Property]]:
        filled = EXTRACT.fill(
            role=draft.role, instruction=instruction(draft.role), most=MOST, **_described(self.kb, draft)
        )
        return Ask(filled, _read, schema=SCHEMA, max_tokens=300, seed=draft.seed)

    def _taken(self, draft: Draft, said: list[_Property]) -> TextualRequirement | None:
        kept = self._checked(draft, said)
        return TextualRequirement(kept[:TAKEN], "model") if kept else None

    def _checked(self, draft: Draft, found: list[_Property]) -> tuple[Property, ...]:
        if self.trusting:
            return tuple(Property(one.text, one.source) for one in found)
        return _checked(self.kb, draft, found)


@dataclass(frozen=True)
class ProductExtractor(ModelExtractor):
    """STaRK-AMAZON's extraction: what kind of thing it is, what speaks against it, hard and soft requirements."""

    @property
    def name(self) -> str:
        """The model's."""
        return f"hard and soft requirements extracted by {self.model.name}"

    def extract(self, drafts: Sequence[Draft]) -> list[TextualRequirement | None]:
        """One requirement per draft that wants one; None where none passed."""
        return _extracted(self.model, drafts, self._ask_product, self._required)

    def _ask_product(self, draft: Draft) -> Ask[_Product]:
        filled = EXTRACT_PRODUCT.fill(most=MOST_OF_A_STRENGTH, **_described(self.kb, draft))
        return Ask(filled, _read_product, schema=PRODUCT_SCHEMA, max_tokens=900, seed=draft.seed)

    def _required(self, draft: Draft, said: _Product) -> TextualRequirement | None:
        hard = self._checked(draft, said.hard[:MOST_OF_A_STRENGTH])
        soft = self._checked(draft, said.soft[:MOST_OF_A_STRENGTH])
        kept = (*hard, *(replace(one, strength="soft") for one in soft))
        item = "" if leaks(said.item, names_of(self.kb, draft.gold)) else said.item.strip()
        negative = tuple(one.text for one in said.negative)
        return TextualRequirement(kept, "model", item, negative) if kept else None


Extractor = PhraseExtractor | ModelExtractor
"""Finds textual requirements: one per draft, None where nothing fit is written about its gold node."""


def _extracted(
    model: LanguageModel,
    drafts: Sequence[Draft],
    asked: Callable[[Draft], Ask[Said]],
    required: Callable[[Draft, Said], TextualRequirement | None],
) -> list[TextualRequirement | None]:
    wanting = [place for place, draft in enumerate(drafts) if draft.with_text]
    found: list[TextualRequirement | None] = [None] * len(drafts)
    outcomes = ask(model, [asked(drafts[place]) for place in wanting], role="extract")
    for place, outcome in zip(wanting, outcomes, strict=True):
        if outcome.value is None:
            trace.fallback("extract", outcome.problem or "no reply", "the question has no textual requirement")
        else:
            found[place] = required(drafts[place], outcome.value)
    return found


def _described(kb: KnowledgeBase, draft: Draft) -> dict[str, str]:
    """The gold node as the prompts show it."""
    said = fields(kb, draft.gold)
    return {
        "type": kb.schema.node_type(draft.requirement.template.target).label,
        "document": "\n".join(f"{name}: {text}" for name, text in said)[:LONGEST_DOCUMENT],
        "names": "; ".join(names_of(kb, draft.gold)),
        "fields": ", ".join(name for name, _ in said),
    }


def _checked(kb: KnowledgeBase, draft: Draft, found: Sequence[_Property]) -> tuple[Property, ...]:
    """Properties that share words with the text, name a field of it, and do not give the name away."""
    sources = [name for name, _ in fields(kb, draft.gold)]
    own = frozenset(terms(written(kb, draft.gold)))
    kept = []
    for one in found:
        words = terms(one.text)
        shared = sum(word in own for word in words) / len(words) if words else 0.0
        if shared >= LEAST_SHARED and not leaks(one.text, names_of(kb, draft.gold)):
            source = one.source if one.source in sources else sources[0]
            kept.append(Property(one.text.strip().rstrip("."), source))
    return tuple(kept)


def _read(completion: Completion) -> list[_Property]:
    return read_json(completion.text, _Reply).properties


def _read_product(completion: Completion) -> _Product:
    return read_json(completion.text, _Product)
