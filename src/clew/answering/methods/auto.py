"""Picks a method by the base and the question: the one `clew ask` uses when none is named.

A base of documents gets knowledge_graph_prompting, one of mere texts or with countless relations hybrid retrieval,
a large endpoint aligned_paths, a graph focus_plus; over bare facts the graph network answers where the reader is not
sure, or aligned_paths where that has learned from confirmed answers or the facts are not at hand. The network knows
English alone: questions in other languages stay with the reader.
What `clew tune` chose for a base comes before all that. The answer says which it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.answering.methods.catalog import create
from clew.answering.methods.focus.focus_plus import FocusPlus
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import reader_parser, taught_of
from clew.answering.reading.touched import MOST_READ, is_huge
from clew.core.types import Answer
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.manifest import TUNED
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.index.tokens import ENGLISH, language_of
from clew.store.open_base import OpenBase

SURE = 0.9
"""Over bare facts a reading less certain than this is left to the graph network or the ranking of paths."""


@dataclass(frozen=True)
class Auto(Method):
    """The method that suits the base."""

    name = "auto"
    kinds: bool = True
    """Of focus_plus: whether a name stands for what lies below it in a hierarchy, too."""
    shown: int = 50
    """Of focus_plus: how many of the nodes that satisfy the query are listed with their evidence."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """The answer of the chosen method, with a note that says which it is."""
        method, why = tools.get_or_create("tuned", lambda: tuned_for(tools)), "`clew tune` chose it for this base"
        if method is None:
            name, why = choose(question, tools)
            options = {"with_relations": False} if name == "hybrid" else {}  # what a node itself is called and says
            method = create(name, options)
        if isinstance(method, FocusPlus):
            method = replace(method, kinds=self.kinds, shown=self.shown)
        answer = method.answer(question, tools)
        return replace(answer, method=method.name, notes=(f"picked {method.name}: {why}", *answer.notes))


def tuned_for(tools: OpenBase) -> Method | None:
    """What `clew tune` chose for this base; None where it chose nothing."""
    if not isinstance(tools.kb, ArrayKnowledgeBase) or not (tools.kb.folder / TUNED).exists():
        return None
    from clew.answering.methods.tuned import read_tuned  # pydantic takes longer than many questions

    tuned = read_tuned(tools.kb.folder)
    return None if tuned is None else tuned.create()


def choose(question: str, tools: OpenBase) -> tuple[str, str]:
    """A method by what the base consists of and how sure the question was read, and why."""
    schema = tools.kb.schema
    if schema.holds_passages:
        return "knowledge_graph_prompting", "the base is made of documents"
    if not schema.relations and not schema.attribute_types:
        return "hybrid", "the base has neither edges nor attributes"
    known = tools.kb.described
    if known is None:
        return "aligned_paths", "the base is behind an endpoint that is too large to read its names"
    if is_huge(schema):
        return "hybrid", f"the base has more than {MOST_READ:,} relations or types, too many to read questions over"
    if not known.has_texts and not schema.attribute_types and language_of(question) == ENGLISH:
        parse = (tools.parser or reader_parser(tools)).parse(question, schema)
        if parse.interpretation.is_plain and not parse.unknown and (parse.certainty or 0.0) < SURE:
            is_near = isinstance(tools.kb, StoredKnowledgeBase) and not taught_of(tools)
            name = "qa_gnn" if is_near else "aligned_paths"
            return name, "the base is bare facts, and the question was not read for sure"
    return "focus_plus", "the base is a graph" if schema.relations else "the base is a table"
