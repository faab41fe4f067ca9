"""Answer questions from the tables of documents: the learned reader reads them, and plans run on the columns.

1  a year in the question selects its rows in a table with a row, or a column, for every year
2  the reader proposes plans, without plans that the table has no answer to
3  the plan runs, and this module adds sums, means and differences, which the reader does not know
4  the most certain answer of several tables is returned, with its rows as quotations
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from clew.answering.reading.documents.table_base import Found, Mask, PlanRun, TableBase, Value, days, shown
from clew.answering.reading.documents.table_columns import (
    Columns,
    Panel,
    TableRow,
    columns_of,
    joined,
    panel_of,
    read_table,
)
from clew.answering.reading.meaning import Meaning, Understanding
from clew.answering.reading.mentions import NamedSpan, Sense, find_named
from clew.answering.reading.plan import LETTERS, Branch, Plan
from clew.answering.reading.quantities import Quantity, quantities
from clew.answering.reading.reader import LearnedReader
from clew.core.types import Evidence, Judgement, NodeSet, Passage
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.index.protocol import Link
from clew.store.index.tokens import terms

TOGETHER = {
    "mean": re.compile(
        r"\bon average\b,?|\b(?:the )?(?:average|mean)\b(?: (?:number|amount|value|size) of\b)?", re.IGNORECASE
    ),
    "sum": re.compile(
        r"\b(?:in total|in all|altogether|combined|overall)\b"
        r"|\b(?:the )?(?:total|sum)\b(?: (?:number|amount) of\b| of\b)?",
        re.IGNORECASE,
    ),
}
"""Words that ask for a mean or a sum. The reader gets a question for the highest value instead."""
DIFFERENCE = re.compile(
    r"\bby how (?:much|many)\b|\bdifference\b|\bhow (?:much|many) (?:more|less|fewer|\w+er)\b.*\bthan\b", re.IGNORECASE
)


@dataclass(frozen=True, eq=False)
class TableAnswer:
    """Answer from a table: a value or names of rows, the interpretation of the question, and the supporting rows."""

    text: str
    value: Value | None
    names: tuple[str, ...]
    rows: tuple[TableRow, ...]
    certainty: float
    how: str
    table: int | None = None
    """The node of the table, if it is in a base."""


@dataclass(frozen=True, eq=False)
class AskedTable:
    """A table that answers questions."""

    table: Columns

    @cached_property
    def panel(self) -> Panel | None:
        """The table as a panel by years, or None."""
        return panel_of(self.table)

    @cached_property
    def whole(self) -> AskedColumns:
        """All rows. If years are columns, one row for each year."""
        return AskedColumns(self.table if self.panel is None else self.panel.table)

    def answer(self, question: str) -> TableAnswer | None:
        """Run the likeliest meaning. If the question names one year, use only the rows of that year."""
        if self.panel is None:
            return self.whole.answer(question)
        years = [one for one in quantities(question) if one.is_date and one.value is not None]
        if len(years) != 1 or BEFORE_OR_AFTER.search(question[: years[0].start]):
            return self.whole.answer(question)
        part = self._of_year(years[0].value or 0.0)
        return None if part is None else part.answer(without(question, years[0]))

    @cached_property
    def _of_year(self) -> Callable[[float], AskedColumns | None]:
        panel = self.panel
        assert panel is not None

        def of_year(year: float) -> AskedColumns | None:
            part = panel.slice(year)
            return None if part is None else AskedColumns(part)

        return lru_cache(MOST_PARTS)(of_year)


ASKED = re.compile(r"\b(?:which|what|whose)\s+((?:\w+\s*){1,2})", re.IGNORECASE)
"""Words for the requested column or kind."""
SHOWN = 20
"""Maximum number of names to list in an answer."""
BEFORE_OR_AFTER = re.compile(
    r"\b(?:before|after|since|until|till|than|between|from|to|by|and|or)\s+(?:the )?(?:year )?$", re.IGNORECASE
)
"""Words before a year that compare with other years."""
MOST_PARTS = 32
"""Number of years of one table to cache."""


def without(question: str, quantity: Quantity) -> str:
    """Remove a year and its preposition from the question."""
    before = re.sub(r"[\s,]*\b(?:in|for|of|during|from|year|the year)?[\s,]*$", "", question[: quantity.start])
    return f"{before} {question[quantity.end :].lstrip()}".strip()


@dataclass(frozen=True, eq=False)
class AskedColumns:
    """Columns that answer questions."""

    table: Columns

    @cached_property
    def base(self) -> TableBase:
        """The table as a knowledge base for the reader."""
        return TableBase(self.table)

    @cached_property
    def reader(self) -> TableQuestions:
        """The learned reader over the table."""
        return TableQuestions(self.base)

    @cached_property
    def generous(self) -> TableQuestions:
        """The learned reader for questions that combine many values."""
        return TableQuestions(self.base, several=True)

    def answer(self, question: str) -> TableAnswer | None:
        """Run the likeliest meaning. Compute a sum, a mean or a difference if the question asks for one."""
        plain = self._carried_out(self.read(question))
        if DIFFERENCE.search(question):
            return self._difference(question)
        for how, pattern in TOGETHER.items():
            if pattern.search(question) and not (plain is not None and is_said_by_table(plain, pattern)):
                together = [
                    found
                    for rest in (pattern.sub(" highest ", question), pattern.sub(" ", question))
                    if (found := self._together(how, self.read(" ".join(rest.split()), several=True))) is not None
                ]
                return max(together, key=lambda found: found.certainty, default=None)
        return plain

    def read(self, question: str, *, several: bool = False) -> Understanding:
        """Return the possible meanings of the question. With `several`, a value may come from many rows."""
        plain, named = find_named(question, self.base, self.base.names)
        dated = self._dated(plain)
        named = [one for one in named if not any(one.start < d.end and d.start < one.end for d in dated)]
        reader = self.generous if several else self.reader
        return reader.understand(plain, sorted([*named, *dated], key=lambda one: one.start))

    def _dated(self, question: str) -> list[NamedSpan]:
        """Return mentions of dates that match exactly one row, if dates name the rows."""
        key = self.table.key
        if key is None or self.table.columns[key].kind != "date":
            return []
        column, found = self.table.columns[key], []
        for one in quantities(question):
            if one.is_date:
                low, high = days(one)
                rows = np.flatnonzero((column.values >= low) & (column.values <= high))
                if len(rows) == 1:
                    link = Link(int(rows[0]), one.text, "exact", 1.0)
                    found.append(NamedSpan(one.start, one.end, one.text, (Sense(self.base.row_type, (link,)),)))
        return found

    def _carried_out(self, understanding: Understanding) -> TableAnswer | None:
        if not understanding.meanings:
            return None
        meaning = understanding.meanings[0]
        found = self._execution(meaning).found()
        if found is None:
            return None
        rows = self._rows(found.rows)
        if found.value is not None:
            text = shown(found.value)
            if meaning.plan.form == "value" and meaning.plan.attribute is not None:
                text = self._execution(meaning).column(meaning.plan.attribute).with_unit(text, self.table.title)
            return TableAnswer(text, found.value, (), rows, understanding.certainty, said(meaning))
        names = self._names(understanding.question, meaning, found)
        if not names:
            return None
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        text = ", ".join(names[:SHOWN]) + more + self._extreme(meaning, found)
        return TableAnswer(text, None, names, rows, understanding.certainty, said(meaning))

    def _names(self, question: str, meaning: Meaning, found: Found) -> tuple[str, ...]:
        """Return the names of the result nodes, or their cells in the column after "which"."""
        after = ASKED.search(question)
        wanted = set(terms(after[1])) if after else set()
        used = set(terms(meaning.text))
        is_rows = bool(len(found.nodes)) and int(found.nodes.array[-1]) < len(self.table.rows)
        for place, column in enumerate(self.table.columns):
            own = set(terms(column.name))
            if is_rows and place != self.table.key and own and own <= wanted and not own & used:
                return tuple(
                    dict.fromkeys(column.cells[node] for node in found.nodes.array.tolist() if column.cells[node])
                )
        return tuple(dict.fromkeys(ref.name for ref in self.base.refs(found.nodes.array) if ref.name))

    def _extreme(self, meaning: Meaning, found: Found) -> str:
        """Return the highest or lowest value, as text to append to the names."""
        plan = meaning.plan
        if plan.attribute is None or not plan.form.startswith(("max", "min", "compare")):
            return ""
        column, places = self._execution(meaning).column(plan.attribute), np.flatnonzero(found.rows)
        return f" ({column.name}: {column.cells[int(places[0])]})" if len(places) else ""

    def _execution(self, meaning: Meaning) -> PlanRun:
        return PlanRun(self.base, self.reader.vocabulary, meaning.plan, meaning.senses, meaning.numbers)

    def _rows(self, mask: Mask) -> tuple[TableRow, ...]:
        return tuple(self.table.rows[place] for place in np.flatnonzero(mask).tolist())

    def _together(self, how: str, understanding: Understanding) -> TableAnswer | None:
        """Return the sum or mean of an attribute over the rows that a meaning is about."""
        for meaning in understanding.meanings[:1]:
            plan = meaning.plan
            if plan.form not in ("max", "min", "value") or plan.attribute is None:
                continue
            execution = self._execution(meaning)
            column, rows = execution.column(plan.attribute), execution.rows_about()
            known = rows & ~np.isnan(column.values)
            if column.kind not in ("number", "integer") or not known.any():
                continue
            value = float(np.sum(column.values[known]) if how == "sum" else np.mean(column.values[known]))
            words = f"{how} {said(meaning).removeprefix('max ').removeprefix('min ')}"
            text = column.with_unit(shown(value), self.table.title)
            return TableAnswer(text, value, (), self._rows(known), understanding.certainty, words)
        return None

    def _difference(self, question: str) -> TableAnswer | None:
        """Return the difference between two rows that a question names."""
        understanding = self.read(question)
        for meaning in understanding.meanings[:1]:
            named = [sense.nodes.array[:1] for sense in meaning.senses if sense.type == self.base.row_type]
            if len(named) != 2 or meaning.plan.attribute is None:
                continue
            column = self._execution(meaning).column(meaning.plan.attribute)
            places = np.concatenate(named)
            first, second = column.values[places]
            if np.isnan(first) or np.isnan(second) or column.kind not in ("number", "integer"):
                continue
            mask = np.isin(np.arange(len(self.table.rows)), places)
            value, words = abs(float(first - second)), f"difference of {column.name}"
            text = column.with_unit(shown(value), self.table.title)
            return TableAnswer(text, value, (), self._rows(mask), understanding.certainty, words)
        return None


def said(meaning: Meaning) -> str:
    """Return a meaning in words, with the names and numbers of the question."""
    text = re.sub(r"(?<=[<>=] )number (\d+)\b", lambda match: meaning.numbers[int(match[1]) - 1].text, meaning.text)
    return re.sub(r"\b[A-H]\b", lambda match: meaning.named[LETTERS.index(match[0])].text, text)


def is_said_by_table(found: TableAnswer, pattern: re.Pattern[str]) -> bool:
    """Return whether a word such as total is part of a matched column, or the value comes from one row."""
    is_cell = found.value is not None and len(found.rows) == 1 and not found.how.startswith(("count", "exists"))
    return is_cell or pattern.search(found.how) is not None


class TableQuestions(LearnedReader):
    """The learned reader over a table. It excludes plans that the table has no answer to."""

    def __init__(self, base: TableBase, *, several: bool = False) -> None:
        """Create a reader over a table. With `several`, a value may come from many rows."""
        super().__init__(base, base.names)
        self.base, self.several = base, several

    def is_worth_choosing(self, plan: Plan, senses: Sequence[Sense], numbers: Sequence[Quantity]) -> bool:
        """Return whether running a plan gives a value or some rows."""
        if plan.form == "describe":
            return True
        used = {branch.mention for branch in plan.branches} | set(plan.mentions)
        if any(sense.type == self.base.row_type and place not in used for place, sense in enumerate(senses)):
            return False
        if self.several and plan.form == "value":
            return True
        if any(len(branch.hops) > 1 and self._comes_back(branch) for branch in plan.branches):
            return False
        execution = PlanRun(self.base, self.vocabulary, plan, tuple(senses), tuple(numbers))
        found = execution.found()
        if found is None or (plan.form == "count" and found.value == 0):
            return False
        return not plan.requirements or not bool(execution.required.all())

    def _comes_back(self, branch: Branch) -> bool:
        """Return whether a path visits a type twice, as from rows to other rows with the same value.

        Such plans are unlikely.
        """
        ends = [self.vocabulary.hops[branch.hops[0]].start, *(self.vocabulary.hops[hop].end for hop in branch.hops)]
        return len(set(ends)) < len(ends)


KEPT = 16
"""Number of tables to cache."""
LEAST = 0.25
"""Minimum certainty of an answer. Tuned on the ten tables of benchmarks/data/tables for tuning."""
NUMBERED = re.compile(r"^\s*table\s+[\w.]+\s*[.:–—-]\s*|,\s*table\s+\w+\s*$", re.IGNORECASE)


@dataclass(eq=False)
class TableReader:
    """Answers questions from tables of a base."""

    kb: StoredKnowledgeBase

    def answer(self, question: str, nodes: Sequence[int]) -> TableAnswer | None:
        """Return the most certain answer from some tables, given as nodes of tables or of their rows."""
        best = self.likeliest(question, nodes)
        return best if best is not None and best.certainty >= LEAST else None

    def likeliest(self, question: str, nodes: Sequence[int]) -> TableAnswer | None:
        """Return the most certain answer, regardless of its certainty."""
        return most_certain([self._ask(question, node) for node in self.tables(nodes)])

    def quotes(self, answer: TableAnswer) -> tuple[Evidence, ...]:
        """Return the supporting rows of an answer as quotations, and the interpretation of the question."""
        rows = [Passage.of(self.kb.node(row.node), row.start, row.end) for row in answer.rows[:5]]
        return (*rows, Judgement("table look-up", answer.certainty, answer.how))

    def tables(self, nodes: Sequence[int]) -> list[int]:
        """Return the tables among some nodes, and the tables whose rows are among them, without duplicates."""
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

    @cached_property
    def _table(self) -> Callable[[int], AskedTable | None]:
        return lru_cache(KEPT)(self._read)

    def _read(self, node: int) -> AskedTable | None:
        table = self.kb.node(node)
        title = NUMBERED.sub("", table.name).strip() or table.name
        pieces = [table, *(self.kb.node(rows) for rows in rows_of(self.kb, node))]
        read = [own for piece in pieces if (own := read_table(piece.text, title, piece.id)) is not None]
        return AskedTable(columns_of(joined(read))) if any(own.rows for own in read) else None


def most_certain(answers: Sequence[TableAnswer | None]) -> TableAnswer | None:
    """Return the most certain answer. Prefer the first of equally certain answers."""
    return max((one for one in answers if one is not None), key=lambda one: one.certainty, default=None)


def rows_of(kb: StoredKnowledgeBase, table: int) -> list[int]:
    """Return the passages with the rows of a long table."""
    if "has_rows" not in kb.schema.relation_names:
        return []
    return list(kb.neighbors(NodeSet.of([table]), "has_rows", "out"))
