"""Questions answered from the tables of documents: read by the learned reader, carried out, quoted row by row."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clew.core.types import Evidence, Judgement, Node, NodeSet
from clew.kb.stored import StoredKnowledgeBase
from clew.methods.knowledge_graph_prompting.answer import quotation
from clew.methods.knowledge_graph_prompting.table_answer import AskedTable, TableAnswer
from clew.methods.knowledge_graph_prompting.table_cells import joined, read_table
from clew.methods.knowledge_graph_prompting.table_columns import columns_of

KEPT = 16
"""Tables that are kept ready."""
QUOTED_ROWS = 5
LEAST = 0.38
"""A less certain answer is none; chosen on the ten tables of benchmarks/data/tables that may be tuned on."""
NUMBERED = re.compile(r"^\s*table\s+[\w.]+\s*[.:–—-]\s*|,\s*table\s+\w+\s*$", re.IGNORECASE)


@dataclass(eq=False)
class TableReader:
    """Answers questions from tables of a base."""

    kb: StoredKnowledgeBase
    least: float = LEAST
    _kept: OrderedDict[int, AskedTable | None] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def answer(self, question: str, nodes: Sequence[int]) -> TableAnswer | None:
        """The most certain answer from some tables, given by their nodes or by those of their rows."""
        best = self.likeliest(question, nodes)
        return best if best is not None and best.certainty >= self.least else None

    def likeliest(self, question: str, nodes: Sequence[int]) -> TableAnswer | None:
        """The same, however certain it is."""
        return most_certain([self._ask(question, node) for node in self.tables(nodes)])

    def quotes(self, answer: TableAnswer) -> tuple[Evidence, ...]:
        """The rows that an answer rests on as quotations, and how the question was understood."""
        rows = [quotation(self.kb.node(row.node), row.start, row.end) for row in answer.rows[:QUOTED_ROWS]]
        return (*rows, Judgement("table look-up", answer.certainty, answer.how))

    def tables(self, nodes: Sequence[int]) -> list[int]:
        """The tables among some nodes, and those that some of them are rows of, each once."""
        found: dict[int, None] = {}
        for node in nodes:
            if self.kb.type_of(node) == "table":
                found[node] = None
            elif "has_rows" in self.kb.schema.relation_names:
                found |= dict.fromkeys(self.kb.neighbors(NodeSet.of([node]), "has_rows", "in"))
        return list(found)

    def _ask(self, question: str, node: int) -> TableAnswer | None:
        table = self._table(node)
        answer = None if table is None else table.answer(question)
        return None if answer is None else replace(answer, table=node)

    def _table(self, node: int) -> AskedTable | None:
        with self._lock:
            if node not in self._kept:
                self._kept[node] = self._read(self.kb.node(node))
            self._kept.move_to_end(node)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return self._kept[node]

    def _read(self, table: Node) -> AskedTable | None:
        title = NUMBERED.sub("", table.name).strip() or table.name
        pieces = [table, *(self.kb.node(rows) for rows in rows_of(self.kb, table.id))]
        read = [own for piece in pieces if (own := read_table(piece.text, title, piece.id)) is not None]
        if not read or not any(own.rows for own in read):
            return None
        return AskedTable(columns_of(joined(read)))


def most_certain(answers: Sequence[TableAnswer | None]) -> TableAnswer | None:
    """Of the answers of several tables the most certain; the first of equals."""
    return max((one for one in answers if one is not None), key=lambda one: one.certainty, default=None)


def rows_of(kb: StoredKnowledgeBase, table: int) -> list[int]:
    """The passages that hold the rows of a long table."""
    if "has_rows" not in kb.schema.relation_names:
        return []
    return list(kb.neighbors(NodeSet.of([table]), "has_rows", "out"))
