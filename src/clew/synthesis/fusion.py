"""Step 3: fuse the relational and the textual requirement into one question."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from clew.kb.schema import Schema
from clew.synthesis.grammar import relational_question
from clew.synthesis.requirement import Requirement
from clew.synthesis.textual import TextualRequirement

How = Literal["grammar", "model draft", "model rewrite"]
DEFAULT_ROLE = "user"


def seeded(seed: int, slot: int, step: str) -> random.Random:
    """The randomness of one step of one question, the same in every run."""
    return random.Random(f"{seed}|{slot}|{step}")


@dataclass(frozen=True)
class Draft:
    """A question in the making: what it asks of the graph, the gold node it is made from, and who asks."""

    slot: int
    requirement: Requirement
    gold: int
    role: str
    with_text: bool
    seed: int

    def rng(self, step: str) -> random.Random:
        """The randomness of one step."""
        return seeded(self.seed, self.slot, step)


@dataclass(frozen=True, slots=True)
class Wording:
    """A question, how it was worded, and the relational requirement alone in plain words."""

    question: str
    how: How
    relational: str
    draft: str | None = None
    """What the first of two stages wrote."""
    problem: str | None = None
    """Why a model's wording was not taken."""


class Fuser(Protocol):
    """Words questions."""

    @property
    def name(self) -> str:
        """What decides its wording, for the log of finished questions."""
        ...

    def fuse(self, drafts: Sequence[Draft], texts: Sequence[TextualRequirement | None]) -> list[Wording]:
        """One wording per draft, in the same order."""
        ...


@dataclass(frozen=True)
class GrammarFuser:
    """Words questions by `clew.synthesis.grammar`."""

    schema: Schema
    name: str = "grammar 1"

    def fuse(self, drafts: Sequence[Draft], texts: Sequence[TextualRequirement | None]) -> list[Wording]:
        """One wording per draft, in the same order."""
        return [self._one(draft, text) for draft, text in zip(drafts, texts, strict=True)]

    def _one(self, draft: Draft, text: TextualRequirement | None) -> Wording:
        template = draft.requirement.template
        names = {label: ref.name for label, ref in draft.requirement.entities.items()}
        relational = relational_question(template, names, self.schema, draft.rng("fusion"))
        if text is None:
            return Wording(_as_role(relational, draft), "grammar", relational)
        phrases = [one.text for one in text.properties]
        question = relational_question(template, names, self.schema, draft.rng("fusion"), phrases)
        return Wording(_as_role(question, draft), "grammar", relational)


def _as_role(question: str, draft: Draft) -> str:
    """Now and then the asker says who is asking."""
    if draft.role == DEFAULT_ROLE or draft.rng("role").random() > 0.3:
        return question
    return f"I am a {draft.role}. {question}"
