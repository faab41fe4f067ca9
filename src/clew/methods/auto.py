"""Picks a method by the base: the one `clew ask` uses when none is named.

A base of documents gets knowledge_graph_prompting, a graph whose nodes carry text focus_plus, bare facts and endpoints
aligned_paths, and a base without edges hybrid retrieval; the answer says which.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.core.types import Answer
from clew.kb.arrays import ArrayKnowledgeBase
from clew.methods.answering import READABLE
from clew.methods.catalog import create
from clew.methods.protocol import Method
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class Auto(Method):
    """The method that suits the base."""

    name = "auto"

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """The answer of the chosen method, with a note that says which it is."""
        name, why = choose(tools)
        answer = create(name).answer(question, tools)
        return replace(answer, method=name, notes=(f"picked {name}: {why}", *answer.notes))


def choose(tools: Toolbox) -> tuple[str, str]:
    """A method by what the base consists of, and why."""
    schema = tools.kb.schema
    if any(kind in schema.type_names for kind in READABLE):
        return "knowledge_graph_prompting", "the base is made of documents"
    if not schema.relations:
        return "hybrid", "the base has no edges"
    if not isinstance(tools.kb, ArrayKnowledgeBase) or not tools.kb.has_texts:
        return "aligned_paths", "the base is bare facts"
    return "focus_plus", "the base is a graph"
