"""Answer questions that are already written in the query language (docs/reference/query_language.md)."""

from __future__ import annotations

from dataclasses import dataclass

from clew.answering.methods.protocol import Method
from clew.answering.queries.parsing import parse
from clew.answering.queries.query_answers import answer_query, run_query
from clew.core import trace
from clew.core.types import Answer
from clew.store.open_base import OpenBase


@dataclass(frozen=True)
class QueryMethod(Method):
    """Runs a query of the query language, such as "find x where (x: hut) and x.beds > 80"."""

    name = "query"
    kinds: bool = True
    """Whether a name also includes the nodes below it in a hierarchy."""

    def answer(self, question: str, tools: OpenBase) -> Answer:
        """Return rows, matches or a value. Raise InputError for a query that cannot be parsed or executed."""
        with trace.span("execute") as span:
            executed = run_query(tools.kb, tools.names, parse(question), kinds=self.kinds)
            span.note(query=str(executed.query), rows=len(executed.result.rows))
        return answer_query(tools.kb, question, executed)
