"""Makes a source for training the reader of the questions of WikiTableQuestions, which have answers but no queries.

    python benchmarks/reader_tables.py ../shared/data/wikitablequestions WORK OUT [--count 6000] [--part 0/2]

Each question of a table that is not kept for measuring (see table_questions.py) is read, and all likely plans are
executed. The likeliest plan that gives exactly the gold answer becomes the query. A question without such a plan is
kept as one that no plan can say. About a fifth of the queries give the gold answer by accident.
"""

import argparse
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from table_questions import cases, is_right

import clew
from clew.answering.queries.certificates import AGGREGATES
from clew.answering.queries.interpretations import execute
from clew.answering.reading import reader as reading
from clew.answering.reading.mentions import find_named
from clew.answering.reading.plan import TARGET, Translator
from clew.answering.reading.reader import LearnedReader
from clew.core.errors import ClewError
from clew.core.query import Aggregate, Attribute, Column, Order, Query, Var
from clew.core.roles import Interpretation
from clew.core.schema import Schema
from clew.lab.training.reader.examples import UNSAID, normal
from clew.lab.training.reader.queries import NoPlanError, plan_of

PLANS = 40
"""Plans to execute for each assignment of names."""
Line = dict[str, Any]


class Reader(LearnedReader):
    """Returns all plans instead of choosing one."""

    def options(self, question: str) -> list[Any]:
        """Return the plans for a question, likeliest first."""
        plain, named = find_named(question, self.kb, self.names)
        found = [
            option
            for taken, cost in reading._assignments(named)
            for option in self._options(plain, taken, cost, self.scorer)
        ]
        return sorted(found, key=lambda option: -option.prior)


def found_cells(reader: LearnedReader, asked: Interpretation) -> list[Any]:
    """Return the cells that an interpretation finds."""
    found = execute(reader.kb, reader.names, asked)
    if found.table is not None:
        return []
    if asked.asks == "nodes":
        return [ref.name for ref in reader.kb.refs(found.nodes.array)]
    if asked.asks == "value" and asked.attribute is not None:
        values = [value for value in reader.kb.values(found.nodes, asked.attribute) if value is not None]
        return [part for value in values for part in (value if isinstance(value, list) else [value])]
    return [found.value]


def plain(asked: Interpretation) -> Query:
    """Return an interpretation as a query in the form that people would write."""
    query, stored = asked.query, Attribute(TARGET, asked.attribute or "")
    number = Aggregate("count", Var(TARGET), distinct=True)
    if asked.asks in AGGREGATES:
        return replace(query, columns=(Column(Aggregate(AGGREGATES[asked.asks], stored)),))
    match asked.asks:
        case "value":
            return replace(query, columns=(Column(stored),))
        case "number":
            return replace(query, columns=(Column(number),))
        case "different":
            return replace(query, columns=(Column(Aggregate("count", stored, distinct=True)),))
        case "common":
            return replace(query, columns=(Column(stored),), group=(stored,), order=(Order(number, True),), first=1)
    return query


def described(name: str, schema: Schema) -> Line:
    """Return a schema as a line of a source."""
    types = [
        {"name": one.name, "attributes": [{"name": a, "kind": schema.attribute_types[a]} for a in one.attributes]}
        for one in schema.node_types
    ]
    relations = [{"name": row.name, "head": row.head, "tail": row.tail} for row in schema.relations]
    return {"schema": name, "types": types, "relations": relations}


def line_of(case: Line, reader: Reader, name: str) -> Line:
    """Return a question with its query."""
    likeliest: list[dict[str, str]] = []
    for option in reader.options(case["question"]):
        writer = Translator(reader.vocabulary, option.named, option.senses, option.numbers)
        mentions = [
            {"text": one.text, "name": writer.constant(place).text, "type": sense.type}
            for place, (one, sense) in enumerate(zip(option.named, option.senses, strict=True))
        ]
        likeliest = likeliest or mentions
        try:
            asked = writer.interpretation(option.plan)
            if not is_right(found_cells(reader, asked), case["answers"]):
                continue
            query = plain(asked)
            again = plan_of(query, reader.vocabulary, [one["name"] for one in mentions], option.numbers)
        except (ClewError, NoPlanError):
            continue
        if normal(again) == normal(option.plan):
            line = {"schema": name, "kind": option.plan.form, "question": case["question"]}
            return {**line, "mentions": mentions, "query": str(query)}
    return {"schema": name, "kind": UNSAID, "question": case["question"], "mentions": likeliest, "query": None}


def lines(asked: list[Line], tables: Path, bases: Path) -> Iterator[tuple[Line, Line]]:
    """Yield the schema and the question of each case."""
    for table, group in itertools.groupby(asked, key=lambda case: case["table"]):
        base, name = bases / f"{table}.kb", f"wtq_{table.replace('/', '_')}"
        try:
            if not base.exists():
                clew.build([tables / table], base)
            tools = clew.open(base).tools
        except ClewError as error:
            print(table, error)
            continue
        reader = Reader(tools.kb, tools.names)
        for case in group:
            yield described(name, reader.schema), line_of(case, reader, name)


def main() -> None:
    """Write the source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=6000)
    parser.add_argument("--part", default="0/1")
    given = parser.parse_args()
    part, parts = map(int, given.part.split("/"))
    reading.PLANS = PLANS
    own = sorted(cases(given.data, given.work, trained=True)[: given.count], key=lambda case: case["table"])[
        part::parts
    ]
    given.out.mkdir(parents=True, exist_ok=True)
    schemas: dict[str, Line] = {}
    said = 0
    with (given.out / "questions.jsonl").open("w", encoding="utf-8") as file:
        for schema, question in lines(own, given.work / "tables", given.work / "bases"):
            schemas[schema["schema"]] = schema
            said += question["query"] is not None
            file.write(json.dumps(question, ensure_ascii=False) + "\n")
            file.flush()
    text = "".join(json.dumps(schema, ensure_ascii=False) + "\n" for schema in schemas.values())
    (given.out / "schemas.jsonl").write_text(text, encoding="utf-8")
    print(f"{len(own)} questions, {said} with a query, {len(schemas)} tables")


if __name__ == "__main__":
    main()
