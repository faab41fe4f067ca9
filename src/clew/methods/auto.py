"""Picks a method by the base: the one `clew ask` uses when none is named.

A base of documents gets knowledge_graph_prompting, a graph whose nodes carry text focus_plus, bare facts and endpoints
tournament_on_path, and a base without edges hybrid retrieval; the answer says which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.core.types import Answer
from clew.kb.arrays import ArrayKnowledgeBase
from clew.methods.focus.focus_plus import FocusPlus
from clew.methods.knowledge_graph_prompting.method import KnowledgeGraphPrompting
from clew.methods.knowledge_graph_prompting.passages import READABLE
from clew.methods.paths.tournament_on_path import TournamentOnPath
from clew.methods.protocol import Method
from clew.methods.stark.retrievers import Hybrid
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class Auto:
    """The method that suits the base."""

    method: Method
    why: str

    @classmethod
    def build(cls, toolbox: Toolbox, k: int = 20) -> Auto:
        """Chosen by what the base consists of."""
        types = toolbox.kb.schema.type_names
        if any(kind in types for kind in READABLE):
            why = "picked knowledge_graph_prompting: the base is made of documents"
            return cls(KnowledgeGraphPrompting.build(toolbox), why)
        if not toolbox.kb.schema.relations:
            return cls(Hybrid.build(toolbox, k=k), "picked hybrid: the base has no edges")
        if not isinstance(toolbox.kb, ArrayKnowledgeBase) or not toolbox.kb.has_texts:
            return cls(TournamentOnPath.build(toolbox), "picked tournament_on_path: the base is bare facts")
        return cls(FocusPlus.build(toolbox, k=k), "picked focus_plus: the base is a graph")

    def answer(self, question: str) -> Answer:
        """The answer of the chosen method, with a note that says which it is."""
        answer = self.method.answer(question)
        return replace(answer, notes=(self.why, *answer.notes))
