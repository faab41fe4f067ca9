"""Makes sources for training the reader of Spider, text2cypher and WikiSQL.

    python benchmarks/reader_corpora.py DATA OUT [--tables 2000] [--seed 0]

Writes OUT/spider, OUT/text2cypher and OUT/wikisql, each with a sister OUT/…_left_out of databases that nothing should
learn from. A question is left out if it does not say the values that its gold query compares with. Of the questions
whose gold query no plan says, a part is kept without it. Needs the group `corpora`.
"""

import argparse
import ast
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cypher_to_query
import sql_to_query
from query_corpora import records, table_query
from sql_to_query import Database, Refused, called

from clew.answering.reading.quantities import quantities
from clew.answering.reading.vocabulary import Vocabulary
from clew.core.errors import ClewError
from clew.core.nouns import singular
from clew.core.query import (
    AnyQuery,
    Attribute,
    Compare,
    Edge,
    Missing,
    Named,
    Not,
    Pattern,
    Query,
    Value,
    Var,
    Variable,
    names_used,
    rewrite,
)
from clew.core.schema import NodeType, Relation, Schema, words_of
from clew.lab.training.reader.examples import UNSAID
from clew.lab.training.reader.queries import NoPlanError, plan_of

LEFT_OUT = {"spider": 30, "text2cypher": 4, "wikisql": 0}
"""Databases of each corpus that are kept for measuring."""
UNSAID_SHARE = 0.3
"""Of the questions that no plan says."""
FEWEST = 6
"""A table of WikiSQL is taken if so many questions are about it."""


@dataclass(frozen=True)
class Corpus:
    """A schema, and how queries over it are turned into queries over the graph."""

    schema: Schema
    names: dict[str, str]
    """Type → the attribute that names its nodes."""
    keys: dict[str, str]
    """Type → the attribute that tells its nodes apart."""
    references: dict[tuple[str, str], tuple[str, str]]
    """(type, attribute) → the relation that it stands for, and where that leads."""
    links: frozenset[str] = frozenset()
    """Types that only link two others: relations of the graph."""

    def converted(self, query: AnyQuery, question: str) -> tuple[Query, list[dict[str, str]]]:
        """Return a query over the graph, and what the question names."""
        if not isinstance(query, Query):
            raise NoPlanError("a combination of queries")
        query = self._with_nodes(query)
        query = self._linked(query)
        return self._named(query, question)

    def _with_nodes(self, query: Query) -> Query:
        """Names and keys of nodes become the nodes, and references edges."""
        types, edges, more = query.pattern.types, list[Edge](), list[Variable]()

        def node(part: Any) -> Any:
            if not isinstance(part, Attribute) or types.get(part.variable) is None:
                return part
            kind = str(types[part.variable])
            if part.name == self.keys.get(kind):
                return Var(part.variable)
            if (kind, part.name) in self.references:
                relation, end = self.references[kind, part.name]
                name = f"{part.variable}_{part.name}"
                known = [
                    one.tail for one in query.pattern.edges if (one.head, one.relation) == (part.variable, relation)
                ]
                if known:
                    return Var(str(known[0]))
                more.append(Variable(name, end))
                edges.append(Edge(part.variable, relation, name))
                return Var(name)
            return Var(part.variable) if part.name == self.names.get(kind) else part

        columns, group, having, order = (
            tuple(rewrite(part, node) for part in some)
            for some in (query.columns, query.group, query.having, query.order)
        )
        variables = (*query.pattern.variables, *dict.fromkeys(more))
        pattern = replace(query.pattern, variables=variables, edges=(*query.pattern.edges, *dict.fromkeys(edges)))
        group = tuple(dict.fromkeys(group))
        return replace(query, columns=columns, group=group, having=having, order=order, pattern=pattern)

    def _linked(self, query: Query) -> Query:
        """Nodes that only link others become edges."""
        pattern = query.pattern
        for name, kind in pattern.types.items():
            if kind not in self.links:
                continue
            used = _used(*query.columns, *query.group, *query.having, *query.order, *pattern.where)
            own = [edge for edge in pattern.edges if edge.head == name]
            known = {edge.relation: edge.tail for edge in own}
            row = next(row for row in self.schema.relations if row.name == kind)
            ends = [known.get(relation) for relation in self._link_ends(kind)]
            more = []
            for place, (end, side) in enumerate(zip(ends, (row.head, row.tail), strict=True)):
                if end is None:
                    ends[place] = f"{name}_{place}"
                    more.append(Variable(f"{name}_{place}", side))
            if name in used:
                raise NoPlanError("attributes of an edge")
            edges = [edge for edge in pattern.edges if edge not in own and edge.tail != name]
            variables = [one for one in pattern.variables if one.name != name]
            edges.append(Edge(str(ends[0]), kind, str(ends[1])))
            pattern = replace(pattern, variables=(*variables, *more), edges=tuple(edges))
        return replace(query, pattern=pattern)

    def _link_ends(self, kind: str) -> list[str]:
        return [relation for (owner, _), (relation, _) in self.references.items() if owner == kind]

    def _named(self, query: Query, question: str) -> tuple[Query, list[dict[str, str]]]:
        """Nodes that a condition names become names; every text that is compared with has to be in the question."""
        types, mentions, where = query.pattern.types, list[dict[str, str]](), []
        constants: dict[str, Named] = {}
        lower = question.lower()
        for formula in query.pattern.where:
            match formula:
                case Compare(Attribute(name, attribute), "=", Value(str() as text)) if attribute == self.names.get(
                    str(types.get(name))
                ):
                    text = text.strip()
                    start = lower.find(text.lower())
                    if start < 0 or not text or name in constants:
                        raise NoPlanError("a name that the question does not say")
                    constants[name] = Named(text, types[name])
                    said = question[start : start + len(text)]
                    mentions.append({"text": said, "name": text, "type": str(types[name])})
                case Compare(Attribute(name, attribute), _, Value(str() as text)):
                    kind = str(types.get(name))
                    if (kind, attribute) in self.references or attribute in (self.keys.get(kind), self.names.get(kind)):
                        raise NoPlanError("a condition on a key")
                    if text.lower() not in lower and not text[:4].isdecimal():
                        raise NoPlanError("a value that the question does not say")
                    where.append(formula)
                case Not(Missing()):
                    continue
                case _:
                    where.append(formula)
        shown = _used(*query.columns, *query.group, *query.having, *query.order)
        targets = [name for name in constants if name in shown or not query.pattern.edges]
        where += [Compare(Var(name), "=", constants[name]) for name in targets]
        replaced = {name: constant for name, constant in constants.items() if name not in targets}
        if replaced.keys() & _used(*where):
            raise NoPlanError("a condition on what is named")
        edges = [
            replace(edge, head=replaced.get(str(edge.head), edge.head), tail=replaced.get(str(edge.tail), edge.tail))
            for edge in query.pattern.edges
        ]
        variables = tuple(one for one in query.pattern.variables if one.name not in replaced)
        pattern = Pattern(variables, tuple(edges), tuple(where), query.pattern.optional)
        return replace(query, pattern=pattern), mentions


def _used(*parts: Any) -> set[str]:
    return {name for part in parts for name in names_used(part)}


def is_name(column: str, kind: str) -> bool:
    """Whether a column holds what rows are called."""
    words = words_of(column).split()
    return words in (["name"], ["title"]) or (
        len(words) > 1 and words[-1] in ("name", "title") and words[-2] in words_of(kind).split()
    )


def of_database(described: dict[str, Any]) -> tuple[Corpus, Database]:
    """A database of Spider: links between two tables are relations."""
    database = Database.of(described)
    whole = database.schema()
    names, links, types = {}, set(), []
    referring = {
        (table, called(column)): (database.relation(table, column), end[0])
        for (table, column), end in database.references.items()
    }
    keys = {table: called(key) for table, key in database.keys.items() if (table, called(key)) not in referring}
    for table, columns in database.tables.items():
        own = [called(column) for column in columns]
        named = [column for column in columns if columns[column] == "text" and is_name(column, table)]
        if named and called(named[0]) != keys.get(table):
            names[table] = called(named[0])
        refers = [column for column in own if (table, column) in referring]
        plain = [column for column in own if column not in refers and column != keys.get(table)]
        if len(refers) == 2 and not plain:
            links.add(table)
            continue
        shown = tuple(column for column in plain if column != names.get(table))
        types.append(NodeType(table, 1, display=singular(table), attributes=shown))
    relations = [row for row in whole.relations if row.head not in links and row.tail not in links]
    for table in sorted(links):
        ends = [end for (owner, _), (_, end) in referring.items() if owner == table]
        if any(end in links for end in ends):
            raise NoPlanError("links of links")
        relations.append(Relation(table, ends[0], ends[1], 1))
    schema = Schema(tuple(types), tuple(relations), whole.attribute_types)
    return Corpus(schema, names, keys, referring, frozenset(links)), database


def of_graph(text: str) -> Corpus:
    """A property graph of text2cypher."""
    whole, described = cypher_to_query.schema_of(text), ast.literal_eval(text)
    names, types = {}, []
    for kind in whole.node_types:
        own = [one["property"] for one in described["node_props"].get(kind.name, [])]
        named = [name for name in own if is_name(name, kind.name)]
        if named:
            names[kind.name] = named[0]
        types.append(replace(kind, attributes=tuple(name for name in own if name != names.get(kind.name))))
    return Corpus(Schema(tuple(types), whole.relations, whole.attribute_types), names, {}, {})


def of_table(rows: list[dict[str, Any]]) -> Corpus:
    """A table of WikiSQL, with the columns that are asked about."""
    names = {name for row in rows for name in (row["select"], *(part[0] for part in row["where"]))}
    numbers = {part[0] for row in rows for part in row["where"] if part[1] in "<>"}
    numbers |= {row["select"] for row in rows if row["aggregate"] in ("sum", "avg", "min", "max")}
    kinds = {called(name): "number" if name in numbers else "text" for name in sorted(names)}
    return Corpus(Schema((NodeType("row", 1, attributes=tuple(kinds)),), (), kinds), {}, {}, {})


Line = dict[str, Any]


class Source:
    """The lines of a source while they are collected."""

    def __init__(self) -> None:
        self.rng = random.Random(0)
        self.schemas: dict[str, Line] = {}
        self.questions: list[Line] = []
        self.reasons: Counter[str] = Counter()
        self.forms: Counter[str] = Counter()

    def add(self, name: str, corpus: Corpus, questions: list[str], convert: Callable[[], AnyQuery]) -> None:
        """Add the questions that mean one query, if a plan says it."""
        vocabulary = Vocabulary(corpus.schema)
        for question in questions:
            query, kind = None, UNSAID
            try:
                query, mentions = corpus.converted(convert(), question)
                spans = sorted((question.find(one["text"]), len(one["text"]), one["name"]) for one in mentions)
                outside = [
                    one
                    for one in quantities(question)
                    if not any(a < one.end and one.start < a + b for a, b, _ in spans)
                ]
                kind = plan_of(query, vocabulary, [name for *_, name in spans], outside).form
            except (NoPlanError, Refused, ClewError, ValueError) as reason:
                self.reasons[f"{type(reason).__name__} {reason}"[:90]] += 1
                if query is None and ("the question does not" in str(reason) or self.rng.random() >= UNSAID_SHARE):
                    continue
            said = {"mentions": mentions, "query": str(query)} if query else {"mentions": [], "query": None}
            self.schemas[name] = _described(name, corpus.schema)
            self.questions.append({"schema": name, "kind": kind, "question": question, **said})
            if kind == UNSAID:
                continue
            self.reasons["converted"] += 1
            self.forms[kind] += 1

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, lines in (("schemas", self.schemas.values()), ("questions", self.questions)):
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def _described(name: str, schema: Schema) -> Line:
    types = [
        {"name": one.name, "attributes": [{"name": a, "kind": schema.attribute_types[a]} for a in one.attributes]}
        for one in schema.node_types
    ]
    relations = [{"name": row.name, "head": row.head, "tail": row.tail} for row in schema.relations]
    return {"schema": name, "types": types, "relations": relations}


def spider(data: Path) -> Iterator[tuple[str, Corpus, list[str], Callable[[], AnyQuery]]]:
    databases = {row["db"]: row for row in records(data / "spider" / "schemas.jsonl.gz")}
    known: dict[str, Any] = {}
    for row in records(data / "spider" / "train.jsonl.gz"):
        name = row["db"]
        if name not in known:
            known[name] = of_database(databases[name])
        corpus, database = known[name]
        asked = list(dict.fromkeys(filter(None, (row["question"], row.get("synonyms")))))
        yield f"spider_{name}", corpus, asked, lambda sql=row["sql"], db=database: sql_to_query.convert(sql, db)


def text2cypher(data: Path) -> Iterator[tuple[str, Corpus, list[str], Callable[[], AnyQuery]]]:
    rows = {row["db"]: row["schema"] for row in records(data / "text2cypher" / "schemas.jsonl.gz")}
    known = {name: (of_graph(text), cypher_to_query.schema_of(text)) for name, text in rows.items()}
    for row in records(data / "text2cypher" / "questions.jsonl.gz"):
        if row["db"] in known:
            corpus, schema = known[row["db"]]
            query = lambda text=row["cypher"], schema=schema: cypher_to_query.convert(text, schema)  # noqa: E731
            yield f"cypher_{row['db']}", corpus, [row["question"]], query


def wikisql(
    data: Path, most: int, rng: random.Random
) -> Iterator[tuple[str, Corpus, list[str], Callable[[], AnyQuery]]]:
    tables: dict[str, list[Line]] = {}
    for row in records(data / "wikisql" / "train.jsonl.gz"):
        tables.setdefault(row["table"], []).append(row)
    large = sorted(name for name, rows in tables.items() if len(rows) >= FEWEST)
    count = 0
    for name in rng.sample(large, len(large)):
        corpus = of_table(tables[name])
        for row in tables[name]:
            yield f"wikisql_{name}", corpus, [row["question"]], lambda row=row: table_query(row)
        count += len(tables[name])
        if count >= most:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tables", type=int, default=2000, help="Questions of WikiSQL to take.")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    every = {"spider": spider(given.data), "text2cypher": text2cypher(given.data)}
    every["wikisql"] = wikisql(given.data, given.tables, rng)
    for corpus, rows in every.items():
        source = Source()
        for row in rows:
            source.add(*row)
        print(corpus, source.reasons.most_common(30), source.forms.most_common())
        names = sorted(source.schemas)
        left = set(random.Random(given.seed).sample(names, LEFT_OUT[corpus]))
        for folder, is_left in ((corpus, False), (f"{corpus}_left_out", True)):
            part = Source()
            part.schemas = {name: line for name, line in source.schemas.items() if (name in left) == is_left}
            part.questions = [line for line in source.questions if (line["schema"] in left) == is_left]
            if part.questions:
                part.write(given.out / folder)
                print(folder, len(part.schemas), "schemas", len(part.questions), "questions")


if __name__ == "__main__":
    main()
