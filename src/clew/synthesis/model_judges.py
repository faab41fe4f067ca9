"""Step 4 with models: three wordings of the same question to a model, or to several, each a judge of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clew.core import trace
from clew.core.types import NodeSet
from clew.kb.protocol import KnowledgeBase
from clew.models.prompts import Prompt
from clew.models.protocol import LanguageModel
from clew.models.structured import Ask, ask
from clew.steps.roles.scoring import read_yes_no
from clew.synthesis.textual import TextualRequirement, fields

PROMPTS = tuple(Prompt.load("clew.synthesis.prompts", f"judge_{name}") for name in ("plain", "strict", "searcher"))
LONGEST_DOCUMENT = 3000


@dataclass(frozen=True)
class ModelJudge:
    """A model with one of the prompts."""

    kb: KnowledgeBase
    model: LanguageModel
    prompt: Prompt

    @property
    def name(self) -> str:
        """Prompt and model."""
        return f"{self.prompt.name} by {self.model.name}"

    def judge(self, requirement: TextualRequirement, nodes: NodeSet) -> list[bool]:
        """A reply that cannot be read counts as no."""
        votes = []
        for outcome in ask(self.model, [self._ask(requirement, node) for node in nodes], role="judge"):
            if outcome.value is None:
                trace.fallback("judge", outcome.problem or "no reply", "counted as no")
            votes.append((outcome.value or 0.0) >= 0.5)
        return votes

    def _ask(self, requirement: TextualRequirement, node: int) -> Ask[float]:
        content = self.kb.node(node)
        document = "\n".join(f"{name}: {text}" for name, text in fields(self.kb, node))[:LONGEST_DOCUMENT]
        filled = self.prompt.fill(
            name=content.name,
            type=self.kb.schema.node_type(content.type).label,
            document=document or "(nothing)",
            requirement=requirement.text,
        )
        return Ask(filled, read_yes_no, max_tokens=4)


def model_judges(kb: KnowledgeBase, models: Sequence[LanguageModel]) -> tuple[ModelJudge, ...]:
    """Three judges: one prompt each for three models, all three for one."""
    return tuple(
        ModelJudge(kb, models[place % len(models)], PROMPTS[place % len(PROMPTS)])
        for place in range(max(len(PROMPTS), len(models)))
    )
