"""Pick a method by the base and the question. This is the default of `clew ask`.

A method that `clew tune` chose for the base comes first. Otherwise the base decides.

documents                                    knowledge_graph_prompting
only texts, or too many relations or types   hybrid
an endpoint too large to read its names      aligned_paths
a graph or a table                           focus_plus

Over bare facts, aligned_paths answers English questions that the reader is not sure of. A note of the answer names the
method.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from clew.answering.methods.catalog import create
from clew.answering.methods.focus.focus_plus import FocusPlus
from clew.answering.methods.protocol import Method
from clew.answering.methods.role_choice import reader_parser
from clew.answering.reading.vocabulary import MOST_READ, is_huge
from clew.core.types import Answer
from clew.store.graph.manifest import TUNED
from clew.store.index.tokens import ENGLISH, language_of
from clew.store.open_base import OpenBase

SURE = 0.9
"""Minimum certainty of a reading over bare facts. Below it, the path ranking answers."""


@dataclass(frozen=True)
class Auto(Method):
    """The method that suits the base."""

    name = "auto"
    kinds: bool = True
    """Option of focus_plus: whether a name also includes the nodes below it in a hierarchy."""
    shown: int = 50
    """Option of focus_plus: maximum number of matching nodes listed with their evidence."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Answer by the chosen method, and add a note that names it."""
        method, why = tools.get_or_create("tuned", lambda: tuned_for(tools)), "`clew tune` chose it for this base"
        if method is None:
            name, why = choose(question, tools)
            options = {"with_relations": False} if name == "hybrid" else {}  # only the node's own names and texts
            method = create(name, options)
        if isinstance(method, FocusPlus):
            method = replace(method, kinds=self.kinds, shown=self.shown)
        answer = method.answer(question, tools)
        return replace(answer, method=method.name, notes=(f"picked {method.name}: {why}", *answer.notes))


def tuned_for(tools: OpenBase) -> Method | None:
    """Return the method that `clew tune` chose for this base, or None."""
    folder = tools.kb.folder
    if folder is None or not (folder / TUNED).exists():
        return None
    from clew.answering.methods.tuned import read_tuned  # importing pydantic takes longer than many questions

    tuned = read_tuned(folder)
    return None if tuned is None else tuned.create()


def choose(question: str, tools: OpenBase) -> tuple[str, str]:
    """Return a method and the reason. It depends on the contents of the base and the certainty of the reading."""
    schema = tools.kb.schema
    if schema.holds_passages:
        return "knowledge_graph_prompting", "the base consists of documents"
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
            return "aligned_paths", "the base is bare facts, and the reading of the question is uncertain"
    return "focus_plus", "the base is a graph" if schema.relations else "the base is a table"
