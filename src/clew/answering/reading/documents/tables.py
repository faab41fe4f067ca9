"""Answer questions from the tables of documents: each is a small base, read and queried like any other base.

1  a table is built like the tables of files: repeated texts are nodes
2  a year in the question selects its rows in a table with a row, or a column, for every year
3  the reader proposes plans, without plans that the table has no answer to
4  the query of the plan runs. Sums and means are asked for as such, and differences come from two values
5  the most certain answer of several tables is returned, with its rows as quotations
"""

from __future__ import annotations

import pathlib
import re
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from clew.answering.queries.interpretations import Execution, execute
from clew.answering.queries.query_answers import value_text
from clew.answering.reading.documents.table_columns import UNIT, Table, TableRow, cleaned, joined, read_table
from clew.answering.reading.meaning import Meaning, Understanding
from clew.answering.reading.mentions import NamedSpan, Sense, find_named
from clew.answering.reading.plan import LETTERS, NUMBERS, Branch, Form, Plan, Translator
from clew.answering.reading.quantities import Quantity, asks_for, quantities
from clew.answering.reading.reader import LearnedReader
from clew.core.errors import InputError
from clew.core.types import Evidence, Judgement, NodeSet, Passage, Path, Value
from clew.store.graph.arrays import ArrayKnowledgeBase
from clew.store.graph.build import write_graph
from clew.store.graph.protocol import StoredKnowledgeBase
from clew.store.graph.schema_file import SchemaEdits, TypeEdit
from clew.store.graph.tables import NODE_COLUMNS, Piece, Problems, Tables
from clew.store.index.build import INDEX, build_indexes
from clew.store.index.protocol import Link, Names
from clew.store.index.tokens import terms
from clew.store.open_base import OpenBase
from clew.store.sources.categories import with_categories
from clew.store.sources.pieces import constant, lists_of, short_names

EXAMPLES = 3
"""Number of names that describe a type."""


@dataclass(frozen=True, eq=False)
class TableBase:
    """The base of a table. The key of a node of `row_type` is the index of its row."""

    table: Table
    kb: ArrayKnowledgeBase
    names: Names
    row_type: str

    @classmethod
    def of(cls, table: Table) -> TableBase:
        """Build the base of a table that has rows, in a temporary folder."""
        folder = tempfile.TemporaryDirectory(prefix="clew-")
        stage = pathlib.Path(folder.name)
        tables, row_type = _tables(table)
        facts = write_graph(tables, stage, Problems())
        plain = ArrayKnowledgeBase.staged(stage, facts.to_json())
        said = {name: TypeEdit(description=such_as(plain, name)) for name in facts.schema.type_names}
        title = "" if table.title == table.noun else table.title
        rows = " : ".join(part for part in (title, said[row_type].description) if part)
        edits = SchemaEdits(types={**said, row_type: TypeEdit(description=rows)})
        language = build_indexes(plain, stage / INDEX)
        kb = ArrayKnowledgeBase.staged(stage, facts.to_json(edits.apply(facts.schema)) | {"language": language})
        weakref.finalize(kb, folder.cleanup)
        return cls(table, kb, OpenBase(kb).names, row_type)

    def rows(self, nodes: NodeSet | Sequence[int]) -> tuple[TableRow, ...]:
        """Return the rows among some nodes."""
        refs = self.kb.refs(list(nodes))
        return tuple(self.table.rows[int(ref.key)] for ref in refs if ref.type == self.row_type)


def _tables(table: Table) -> tuple[Tables, str]:
    """Return the nodes and edges of a table, and the type of its rows."""
    shown = [at for at in (table.key, table.year) if at is not None]
    cells = [row.cells for row in table.rows]
    named = _texts([", ".join(row[at] for at in shown) for row in cells])
    spoken = [pc.replace_substring_regex(named, r"[._]", " "), short_names(named)]
    spoken += [_texts(table.column(at)) for at in range(len(table.header)) if at not in shown and table.is_name(at)]
    content = {
        "key": _texts([f"{row:06}" for row in range(len(cells))]),
        "type": constant(table.noun, len(cells)),
        "name": named,
        "aliases": lists_of([one for one in spoken if one is not None]),
    }
    for at, name in enumerate(table.labels):
        if at != table.key or table.year is not None or table.is_time(at):
            while name in {*content, *NODE_COLUMNS, table.noun}:
                name += "_"
            content[name] = table.columns[at]
    return with_categories(Tables((Piece(pa.table(content), table.title),), ())), table.noun


def _texts(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def such_as(kb: ArrayKnowledgeBase, kind: str) -> str:
    """Return some names as the description of a type, for headers such as "name"."""
    names: Iterable[str] = (ref.name for ref in kb.refs(kb.nodes(kind).array[: 2 * EXAMPLES]))
    some = list(dict.fromkeys(name for name in names if name))[:EXAMPLES]
    return f"such as {', '.join(some)}" if some else ""


ANSWERED = frozenset({"list", "count", "exists", "value", "max", "min", "most", "fewest", "compare_max", "compare_min"})
"""Forms of questions that a table answers. The others are too rare to be right."""
TOGETHER: dict[Form, re.Pattern[str]] = {
    "average": re.compile(
        r"\bon average\b,?|\b(?:the )?(?:average|mean)\b(?: (?:number|amount|value|size) of\b)?", re.IGNORECASE
    ),
    "sum": re.compile(
        r"\b(?:in total|in all|altogether|combined|overall)\b"
        r"|\b(?:the )?(?:total|sum)\b(?: (?:number|amount) of\b| of\b)?",
        re.IGNORECASE,
    ),
}
"""Words that ask for a mean or a sum. The reader gets a question for the highest value instead."""
ASKED = re.compile(r"\b(?:which|what|whose)\s+((?:\w+\s*){1,2})", re.IGNORECASE)
"""Words for the requested column or kind."""
BEFORE_OR_AFTER = re.compile(
    r"\b(?:before|after|since|until|till|than|between|from|to|by|and|or)\s+(?:the )?(?:year )?$", re.IGNORECASE
)
"""Words before a year that compare with other years."""
NUMBERED = re.compile(r"^\s*table\s+[\w.]+\s*[.:–—-]\s*|,\s*table\s+\w+\s*$", re.IGNORECASE)
SHOWN = 20
"""Maximum number of names to list in an answer."""
QUOTED = 5
"""Maximum number of rows to quote."""
MAX_VALUES = 3
"""Maximum number of different values to return for rows of one name."""
KEPT, KEPT_YEARS = 16, 32
"""Number of tables to cache, and of years of one table."""
LEAST = 0.25
"""Minimum certainty of an answer. Tuned on the ten tables of benchmarks/data/tables for tuning."""


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


class AskedTable:
    """A table that answers questions."""

    def __init__(self, table: Table) -> None:
        """Clean up a table with rows. If years are columns, it gets one row for each year."""
        self.table = cleaned(table)
        self._of_year = lru_cache(KEPT_YEARS)(self._part)

    @cached_property
    def whole(self) -> TableQuestions:
        """All rows."""
        return TableQuestions(TableBase.of(self.table))

    def answer(self, question: str) -> TableAnswer | None:
        """Run the likeliest meaning. If the question names one year, use only the rows of that year."""
        years = [one for one in quantities(question) if one.is_date and one.value is not None]
        if self.table.year is None or len(years) != 1 or BEFORE_OR_AFTER.search(question[: years[0].start]):
            return self.whole.answer(question)
        part = self._of_year(years[0].value or 0.0)
        return None if part is None else part.answer(without(question, years[0]))

    def _part(self, year: float) -> TableQuestions | None:
        part = self.table.of_year(year)
        return None if part is None else TableQuestions(TableBase.of(part))


def without(question: str, quantity: Quantity) -> str:
    """Remove a year and its preposition from the question."""
    before = re.sub(r"[\s,]*\b(?:in|for|of|during|from|year|the year)?[\s,]*$", "", question[: quantity.start])
    return f"{before} {question[quantity.end :].lstrip()}".strip()


class TableQuestions(LearnedReader):
    """The learned reader over a table. It excludes plans that the table has no answer to, and runs the likeliest."""

    def __init__(self, base: TableBase, *, several: bool = False) -> None:
        """Create a reader over a table. With `several`, a value may come from many rows."""
        super().__init__(base.kb, base.names)
        self.base, self.several = base, several

    @cached_property
    def generous(self) -> TableQuestions:
        """The reader for questions that combine many values."""
        return TableQuestions(self.base, several=True)

    def answer(self, question: str) -> TableAnswer | None:
        """Run the likeliest meaning. Compute a sum or a mean if the question asks for one."""
        plain = self._carried_out(self.understood(question))
        for form, pattern in TOGETHER.items():
            if pattern.search(question) and not (plain is not None and is_said_by_table(plain, pattern)):
                together = [
                    found
                    for rest in (pattern.sub(" highest ", question), pattern.sub(" ", question))
                    if (found := self._together(form, " ".join(rest.split()))) is not None
                ]
                return max(together, key=lambda found: found.certainty, default=None)
        return plain

    def understood(self, question: str) -> Understanding:
        """Return the possible meanings of the question."""
        plain, named = find_named(question, self.kb, self.names)
        dated = self._dated(plain)
        named = [one for one in named if not any(one.start < d.end and d.start < one.end for d in dated)]
        return self.understand(plain, sorted([*named, *dated], key=lambda one: one.start))

    def _dated(self, question: str) -> list[NamedSpan]:
        """Return mentions of dates that match exactly one row, if dates name the rows."""
        table, found = self.base.table, []
        if table.key is None or table.profiles[table.key].kind != "date":
            return []
        refs = self.kb.refs(self.kb.nodes(self.base.row_type).array)
        days = [str(table.columns[table.key][int(ref.key)]) for ref in refs]
        for one in quantities(question):
            rows = [ref for ref, day in zip(refs, days, strict=True) if one.is_date and one.low <= day <= one.high]
            if len(rows) == 1:
                link = Link(rows[0].id, rows[0].name, "fuzzy", 1.0)
                found.append(NamedSpan(one.start, one.end, one.text, (Sense(self.base.row_type, (link,)),)))
        return found

    def is_worth_choosing(self, plan: Plan, senses: Sequence[Sense], numbers: Sequence[Quantity]) -> bool:
        """Return whether running a plan gives a value or some rows."""
        used = {branch.mention for branch in plan.branches} | set(plan.mentions)
        if any(sense.type == self.base.row_type and at not in used for at, sense in enumerate(senses)):
            return plan.form == "describe"
        if plan.form == "describe" or (self.several and plan.form == "value"):
            return True
        if plan.form not in ANSWERED or any(one.attribute is None for one in plan.requirements):
            return False
        if any(len(set(types)) < len(types) for types in map(self._types, plan.branches)):
            return False  # from rows to other rows with the same value
        named = tuple(NamedSpan(0, 0, sense.links[0].alias, (sense,)) for sense in senses)
        found = self._executed(Meaning(plan, named, tuple(senses), tuple(numbers), 0.0, 0.0, ""))
        if plan.form == "value" and plan.attribute is not None:
            known = self.kb.values(found.nodes, self.vocabulary.attributes[plan.attribute].name)
            return 0 < len({value_text(value) for value in known if value is not None}) <= MAX_VALUES
        return found.is_answer and not (plan.form == "count" and found.value == 0)

    def _types(self, branch: Branch) -> list[str]:
        """Return the types on a path of several hops."""
        hops = [self.vocabulary.hops[hop] for hop in branch.hops]
        return [hops[0].start, *(one.end for one in hops)] if len(hops) > 1 else []

    def _executed(self, meaning: Meaning, plan: Plan | None = None) -> Execution:
        """Run a plan. For the highest value, or the names of rows, return the rows."""
        plan, key = plan or meaning.plan, self.base.table.key
        asked = "" if plan.asked is None else self.vocabulary.attributes[plan.asked].name
        if plan.asked == plan.attribute or (key is not None and asked.rstrip("_") == self.base.table.labels[key]):
            plan = replace(plan, asked=None)
        translator = Translator(self.vocabulary, meaning.named, meaning.senses, meaning.numbers)
        return execute(self.base.kb, self.names, translator.interpretation(plan))

    def _carried_out(self, understanding: Understanding) -> TableAnswer | None:
        meaning, certainty = next(iter(understanding.meanings), None), understanding.certainty
        if meaning is None or meaning.plan.form not in ANSWERED:
            return None
        if meaning.plan.is_difference != asks_for("difference", understanding.question):
            return None
        found = self._executed(meaning)
        value = found.value
        if found.table is not None:
            value = ", ".join(dict.fromkeys(value_text(row[-1]) for row in found.table.rows))
        if value is not None:
            is_value = meaning.plan.form == "value" and found.asked.attribute is not None
            text = self._with_unit(shown(value), found.asked.attribute or "") if is_value else shown(value)
            return TableAnswer(text, value, (), self._rows(found), certainty, said(meaning))
        if names := self._names(understanding.question, meaning, found):
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            text = ", ".join(names[:SHOWN]) + more + self._extreme(meaning, found)
            return TableAnswer(text, None, names, self._rows(found), certainty, said(meaning))
        return None

    def _names(self, question: str, meaning: Meaning, found: Execution) -> tuple[str, ...]:
        """Return the names of the result nodes, or their cells in the column after "which"."""
        table, rows = self.base.table, self.base.rows(found.nodes)
        after = ASKED.search(question)
        wanted = set(terms(after[1])) if after else set()
        used = set(terms(meaning.text))
        columns = [at for at, own in enumerate(table.header) if at != table.key and _is_asked(own, wanted, used)]
        at = next(iter(columns), table.key)
        if rows and at is not None:
            return tuple(dict.fromkeys(row.cells[at] for row in rows if row.cells[at]))
        return tuple(dict.fromkeys(ref.name for ref in self.kb.refs(found.nodes.array) if ref.name))

    def _extreme(self, meaning: Meaning, found: Execution) -> str:
        """Return the highest or lowest value, as text to append to the names."""
        plan = meaning.plan
        if plan.attribute is None or not plan.form.startswith(("max", "min", "compare")):
            return ""
        name = self.vocabulary.attributes[plan.attribute].name
        values = self.kb.values(found.nodes, name)[:1]
        return "".join(f" ({name}: {shown(value)})" for value in values)

    def _with_unit(self, value: str, attribute: str) -> str:
        """Add the unit of the attribute: “120 MWh”, “13.1 (in millions of euros)”."""
        found = UNIT.search(attribute)
        if found is None or self.schema.attribute_types.get(attribute) not in NUMBERS or not value[-1:].isdigit():
            return value
        return f"{value} ({found[1]})" if " " in found[1] else f"{value} {found[1]}"

    def _rows(self, found: Execution) -> tuple[TableRow, ...]:
        """Return the rows that are the result, or that lead to it."""
        if rows := self.base.rows(found.nodes):
            return rows
        evidence = found.evidence(self.base.kb, found.nodes.array[:SHOWN].tolist())
        facts = [fact for pieces in evidence for piece in pieces if isinstance(piece, Path) for fact in piece.facts]
        led = [end.id for fact in facts for end in (fact.head, fact.tail)]
        return self.base.rows(list(dict.fromkeys(led)) or self.kb.neighbors(found.nodes))

    def _together(self, form: Form, question: str) -> TableAnswer | None:
        """Return the sum or mean of an attribute over the rows that a meaning is about."""
        understanding = self.generous.understood(question)
        meaning = next(iter(understanding.meanings), None)
        if meaning is None or meaning.plan.attribute is None or meaning.plan.form not in ("max", "min", "value"):
            return None
        attribute = self.vocabulary.attributes[meaning.plan.attribute]
        if attribute.kind not in NUMBERS:
            return None
        found = self._executed(meaning, replace(meaning.plan, form=form, asked=None))
        if found.value is None:
            return None
        words = f"{form} {said(meaning).removeprefix('max ').removeprefix('min ')}"
        text = self._with_unit(shown(found.value), attribute.name)
        return TableAnswer(text, found.value, (), self._rows(found), understanding.certainty, words)


def _is_asked(header: str, asked: set[str], used: set[str]) -> bool:
    own = set(terms(header))
    return bool(own) and own <= asked and not own & used


def said(meaning: Meaning) -> str:
    """Return a meaning in words, with the names and numbers of the question."""
    text = re.sub(r"(?<=[<>=] )number (\d+)\b", lambda match: meaning.numbers[int(match[1]) - 1].text, meaning.text)
    return re.sub(r"\b[A-H]\b", lambda match: meaning.named[LETTERS.index(match[0])].text, text)


def is_said_by_table(found: TableAnswer, pattern: re.Pattern[str]) -> bool:
    """Return whether a word such as total is part of a matched column, or the value comes from one row."""
    is_cell = found.value is not None and len(found.rows) == 1 and not found.how.startswith(("count", "exists"))
    return is_cell or pattern.search(found.how) is not None


def shown(value: Value) -> str:
    """Return a value as text."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


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
        rows = [Passage.of(self.kb.node(row.node), row.start, row.end) for row in answer.rows[:QUOTED]]
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
        with suppress(InputError):  # infinite numbers
            answer = None if table is None else table.answer(question)
            return None if answer is None else replace(answer, table=node)
        return None

    @cached_property
    def _table(self) -> Callable[[int], AskedTable | None]:
        return lru_cache(KEPT)(self._read)

    def _read(self, node: int) -> AskedTable | None:
        table = self.kb.node(node)
        title = NUMBERED.sub("", table.name).strip() or table.name
        pieces = [table, *(self.kb.node(rows) for rows in rows_of(self.kb, node))]
        read = [own for piece in pieces if (own := read_table(piece.text, title, piece.id)) is not None]
        return AskedTable(joined(read)) if any(own.rows for own in read) else None


def most_certain(answers: Sequence[TableAnswer | None]) -> TableAnswer | None:
    """Return the most certain answer. Prefer the first of equally certain answers."""
    return max((one for one in answers if one is not None), key=lambda one: one.certainty, default=None)


def rows_of(kb: StoredKnowledgeBase, table: int) -> list[int]:
    """Return the passages with the rows of a long table."""
    if "has_rows" not in kb.schema.relation_names:
        return []
    return list(kb.neighbors(NodeSet.of([table]), "has_rows", "out"))
