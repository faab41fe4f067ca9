"""Step 2 with a model: extract properties of the gold node by role and check them against its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from clew.core import trace
from clew.core.types import NodeSet
from clew.lab.synthesis.fusion import QuestionDraft, instruction
from clew.lab.synthesis.judging import LONGEST_DOCUMENT
from clew.lab.synthesis.records import leaks, names_of
from clew.lab.synthesis.textual import Property, TextualRequirement, distinctive_phrase, fields, written
from clew.models.protocol import Completion, LanguageModel
from clew.models.structured import Ask, Prompt, ask, object_schema, read_json
from clew.store.graph.protocol import KnowledgeBase
from clew.store.index.lexical import LexicalIndex
from clew.store.index.tokens import terms


@dataclass(frozen=True)
class PhraseExtractor:
    """Extracts distinctive phrases from the texts of gold nodes."""

    kb: KnowledgeBase
    lexical: LexicalIndex
    name: str = "distinctive phrases"

    def extract(self, drafts: Sequence[QuestionDraft]) -> list[TextualRequirement | None]:
        """Return one phrase per draft with a textual requirement."""
        return [self._one(draft) if draft.with_text else None for draft in drafts]

    def _one(self, draft: QuestionDraft) -> TextualRequirement | None:
        others = draft.requirement.possible - NodeSet.of([draft.gold])
        return distinctive_phrase(self.kb, self.lexical, draft.gold, others, draft.rng("textual"))


EXTRACT, EXTRACT_PRODUCT = (Prompt.load("clew.lab.synthesis.prompts", name) for name in ("extract", "extract_product"))
MOST = 3
"""Number of properties to request from a model."""
MAX_PER_STRENGTH = 5
"""Number of hard and of soft requirements to request from a model, like the paper."""
TAKEN = 2
"""Maximum number of properties of a question."""
MIN_SHARED_WORDS = 0.34
"""Minimum share of a property's words in the text. The judges decide whether the text implies it."""
_LISTED = {"type": "array", "items": object_schema({"text": {"type": "string"}, "source": {"type": "string"}})}
SCHEMA = object_schema({"properties": _LISTED})
PRODUCT_SCHEMA = object_schema({"item": {"type": "string"}, "negative": _LISTED, "hard": _LISTED, "soft": _LISTED})


class _Property(BaseModel):
    text: str
    source: str = ""


class _Reply(BaseModel):
    properties: list[_Property]


class _Product(BaseModel):
    item: str
    negative: list[_Property] = []
    hard: list[_Property] = []
    soft: list[_Property] = []


@dataclass(frozen=True)
class ModelExtractor:
    """Asks a model for properties in the text that matter to a role."""

    kb: KnowledgeBase
    model: LanguageModel
    trusting: bool = False
    """Whether to skip checks of properties. Only for estimates."""

    @property
    def name(self) -> str:
        """Description with the model's name."""
        return f"extracted by {self.model.name}"

    def extract(self, drafts: Sequence[QuestionDraft]) -> list[TextualRequirement | None]:
        """Return one requirement per draft with a textual requirement, or None if no property passes."""
        wanting = [place for place, draft in enumerate(drafts) if draft.with_text]
        found: list[TextualRequirement | None] = [None] * len(drafts)
        outcomes = ask(self.model, [self._ask(drafts[place]) for place in wanting], role="extract")
        for place, outcome in zip(wanting, outcomes, strict=True):
            if outcome.value is None:
                trace.fallback("extract", outcome.problem or "no reply", "the question has no textual requirement")
            else:
                found[place] = self._required(drafts[place], outcome.value)
        return found

    def _ask(self, draft: QuestionDraft) -> Ask[Any]:
        filled = EXTRACT.fill(
            role=draft.role, instruction=instruction(draft.role), most=MOST, **_described(self.kb, draft)
        )
        return Ask(filled, partial(_read, kind=_Reply), schema=SCHEMA, max_tokens=300, seed=draft.seed)

    def _required(self, draft: QuestionDraft, said: Any) -> TextualRequirement | None:
        kept = self._checked(draft, said.properties)
        return TextualRequirement(kept[:TAKEN], "model") if kept else None

    def _checked(self, draft: QuestionDraft, found: list[_Property]) -> tuple[Property, ...]:
        """Return the properties that share words with the text and do not contain the node's name."""
        if self.trusting:
            return tuple(Property(one.text, one.source) for one in found)
        sources = [name for name, _ in fields(self.kb, draft.gold)]
        own = frozenset(terms(written(self.kb, draft.gold)))
        kept = []
        for one in found:
            words = terms(one.text)
            shared = sum(word in own for word in words) / len(words) if words else 0.0
            if shared >= MIN_SHARED_WORDS and not leaks(one.text, names_of(self.kb, draft.gold)):
                source = one.source if one.source in sources else sources[0]
                kept.append(Property(one.text.strip().rstrip("."), source))
        return tuple(kept)


@dataclass(frozen=True)
class ProductExtractor(ModelExtractor):
    """STaRK-AMAZON's extraction: kind of item, negative points, hard and soft requirements."""

    @property
    def name(self) -> str:
        """Description with the model's name."""
        return f"hard and soft requirements extracted by {self.model.name}"

    def _ask(self, draft: QuestionDraft) -> Ask[Any]:
        filled = EXTRACT_PRODUCT.fill(most=MAX_PER_STRENGTH, **_described(self.kb, draft))
        return Ask(filled, partial(_read, kind=_Product), schema=PRODUCT_SCHEMA, max_tokens=900, seed=draft.seed)

    def _required(self, draft: QuestionDraft, said: Any) -> TextualRequirement | None:
        hard = self._checked(draft, said.hard[:MAX_PER_STRENGTH])
        soft = self._checked(draft, said.soft[:MAX_PER_STRENGTH])
        kept = (*hard, *(replace(one, strength="soft") for one in soft))
        item = "" if leaks(said.item, names_of(self.kb, draft.gold)) else said.item.strip()
        negative = tuple(one.text for one in said.negative)
        return TextualRequirement(kept, "model", item, negative) if kept else None


Extractor = PhraseExtractor | ModelExtractor
"""Extracts one textual requirement per draft, or None if the gold node has no suitable text."""


def _described(kb: KnowledgeBase, draft: QuestionDraft) -> dict[str, str]:
    """Return the prompt fields of the gold node."""
    said = fields(kb, draft.gold)
    return {
        "type": kb.schema.node_type(draft.requirement.template.target).label,
        "document": "\n".join(f"{name}: {text}" for name, text in said)[:LONGEST_DOCUMENT],
        "names": "; ".join(names_of(kb, draft.gold)),
        "fields": ", ".join(name for name, _ in said),
    }


def _read(completion: Completion, kind: type[BaseModel]) -> BaseModel:
    return read_json(completion.text, kind)
