"""The ceiling of any retrieval over passages: the gold passages of each question, read by the same reader.

Gold is known to the evaluation alone, so this method can be evaluated and never asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clew.core.types import Answer, Ranking
from clew.datasets.questions import Dataset
from clew.methods.knowledge_graph_prompting.answer import answer_from_passages
from clew.methods.protocol import Method
from clew.methods.role_choice import reader_for
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class GoldenPassages(Method):
    """The gold passages of each question: what a perfect retrieval would give the reader."""

    name = "golden_passages"
    gold: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, dataset: Dataset) -> GoldenPassages:
        """Those of a data set."""
        return cls({question.text: question.passages for question in dataset.questions})

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """The gold passages, in their order, read."""
        nodes = [tools.kb.find(key) for key in self.gold.get(question, ())]
        ranking = Ranking.of(nodes, list(range(len(nodes), 0, -1)))
        return answer_from_passages(tools.stored, question, ranking, reader_for(tools))
