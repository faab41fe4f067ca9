"""Step 2 without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.types import NodeSet
from clew.kb.protocol import KnowledgeBase
from clew.synthesis.fusion import Draft
from clew.synthesis.textual import Rarity, TextualRequirement, distinctive_phrase


@dataclass(frozen=True)
class PhraseExtractor:
    """Distinctive phrases of the gold nodes' texts."""

    kb: KnowledgeBase
    rarity: Rarity
    name: str = "distinctive phrases"

    def extract(self, drafts: Sequence[Draft]) -> list[TextualRequirement | None]:
        """One phrase per draft that wants one."""
        return [self._one(draft) if draft.with_text else None for draft in drafts]

    def _one(self, draft: Draft) -> TextualRequirement | None:
        others = draft.requirement.possible - NodeSet.of([draft.gold])
        return distinctive_phrase(self.kb, self.rarity, draft.gold, others, draft.rng("textual"))
