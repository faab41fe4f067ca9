"""How many questions of Spider and text2cypher a language model answers rightly in the query language.

    python benchmarks/model_queries.py DATA WORK --model batch:WORK/batch

DATA holds spider/ and text2cypher/. Bases with made-up rows are made from their schemas under WORK, each question is
asked by the default method with the model, and its rows are compared with those of the gold query: by SQLite, or the
gold Cypher converted to the query language. With a batch folder the first run collects the prompts. Needs the group
`corpora`.
"""

import argparse
import ast
import json
import random
import re
from collections import Counter
from collections.abc import Container
from dataclasses import replace
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any

import cypher_to_query
import pyarrow as pa
from query_corpora import COMPARED, _row, called, made_up, records, sqlite
from sql_to_query import Database, Refused

import clew
from clew.answering.queries.execution import execute
from clew.core.errors import ClewError, PendingError
from clew.core.query import AnyQuery, Combined
from clew.core.types import Answer, NodeRef
from clew.store.building import build
from clew.store.graph.tables import Piece, Tables

NAMED = ("name", "title")
MOST_COLUMNS = 4
"""Columns of a gold query: rows are compared in every order of them."""


def tables_of(nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> Tables:
    """Nodes and edges with their attributes; each attribute has one kind."""

    def piece(rows: list[dict[str, Any]], needed: tuple[str, ...], file: str) -> Piece:
        names = dict.fromkeys((*needed, *(name for row in rows for name in row)))
        columns = {}
        for name in names:
            values = [row.get(name) for row in rows]
            numbers = all(isinstance(one, int | float) for one in values if one is not None)
            columns[name] = pa.array(
                [None if one is None else float(one) if numbers else str(one) for one in values],
                pa.float64() if numbers and name not in needed else pa.string(),
            )
        return Piece(pa.table(columns), file)

    return Tables(
        (piece(nodes, ("key", "type", "name"), "nodes"),), (piece(edges, ("head", "relation", "tail"), "edges"),)
    )


def spider_cases(data: Path, work: Path, count: int, seed: int, only: Container[str] = ()) -> list[dict[str, Any]]:
    """Questions with the base that they are asked over and the rows of their gold SQL, perhaps over some databases."""
    databases = {row["db"]: Database.of(row) for row in records(data / "spider" / "schemas.jsonl.gz")}
    questions = list(records(data / "spider" / "train.jsonl.gz"))
    every: dict[str, list[str]] = {}
    for row in questions:
        every.setdefault(row["db"], []).append(row["sql"])
    random.Random(seed).shuffle(questions)
    cases: list[dict[str, Any]] = []
    for row in questions:
        if len(cases) == count:
            break
        name, database = row["db"], databases[row["db"]]
        if "sqlite_sequence" in database.tables or (only and name not in only):
            continue
        texts: dict[str, set[str]] = {}
        for sql in every[name]:
            for column, text in COMPARED.findall(sql + " "):
                texts.setdefault(column.lower(), set()).add(text)
        rows = made_up(database, texts, random.Random(seed))
        try:
            gold = [_row(one) for one in sqlite(database, rows).execute(row["sql"])]
        except Exception:
            continue
        if (
            not gold
            or len(gold[0]) > MOST_COLUMNS
            or gold == [(0.0,)]
            or all(cell is None for one in gold for cell in one)
        ):
            continue  # what finds nothing shows nothing
        base = work / "spider" / f"{name}.kb"
        if not base.exists():
            base.parent.mkdir(parents=True, exist_ok=True)
            build(_of_database(database, rows), base)
        cases.append({"base": str(base), "question": row["question"], "gold": gold, "query": row["sql"]})
    return cases


def _of_database(database: Database, rows: dict[str, list[dict[str, Any]]]) -> Tables:
    nodes, edges = [], []
    for table, own in rows.items():
        for number, row in enumerate(own):
            shown = next((str(row[name]) for name in NAMED if row.get(name) not in (None, "")), f"{table} {number}")
            held = {called(name): value for name, value in row.items()}
            nodes.append({"key": f"{table}:{number}", "type": table, "name": shown, **held})
    for (table, name), (other, column) in database.references.items():
        for number, row in enumerate(rows[table]):
            for place, far in enumerate(rows[other]):
                if row[name] == far[column]:
                    ends = {"head": f"{table}:{number}", "tail": f"{other}:{place}"}
                    edges.append({**ends, "relation": f"{table}.{name}"})
    return tables_of(nodes, edges)


def cypher_cases(data: Path, work: Path, count: int, seed: int) -> list[dict[str, Any]]:
    """Questions with the base that they are asked over and the rows of their gold Cypher, converted."""
    described = {row["db"]: row["schema"] for row in records(data / "text2cypher" / "schemas.jsonl.gz")}
    questions = [row for row in records(data / "text2cypher" / "questions.jsonl.gz") if row["db"] in described]
    every: dict[str, str] = {}
    for row in questions:
        every[row["db"]] = every.get(row["db"], "") + "\n" + row["cypher"]
    random.Random(seed).shuffle(questions)
    cases: list[dict[str, Any]] = []
    opened: dict[str, Any] = {}
    for row in questions:
        if len(cases) == count:
            break
        base = work / "cypher" / f"{row['db']}.kb"
        if not base.exists():
            base.parent.mkdir(parents=True, exist_ok=True)
            build(_of_graph(ast.literal_eval(described[row["db"]]), every[row["db"]], random.Random(seed)), base)
        kb = opened.setdefault(row["db"], clew.open(base)).tools.kb
        try:
            query = cypher_to_query.convert(row["cypher"], kb.schema)
            gold = [tuple(one) for one in execute(kb, query).rows]
            every_row = execute(kb, _with_all(query)).rows
        except (Refused, ClewError):
            continue
        if (
            gold
            and len(gold[0]) <= MOST_COLUMNS
            and gold != [(0.0,)]
            and not all(cell is None for one in gold for cell in one)
        ):
            case = {"base": str(base), "question": row["question"], "gold": gold, "query": str(query)}
            cases.append({**case, "equal": [tuple(one) for one in every_row]})
    return cases


def _with_all(query: AnyQuery) -> AnyQuery:
    """The query with every row that its limit could have left as well: ties, or all where it has no order."""
    if isinstance(query, Combined) or query.first is None:
        return query
    return replace(query, ties=True) if query.order else replace(query, first=None)


def _of_graph(described: dict[str, Any], queries: str, chance: random.Random) -> Tables:
    """Thirty nodes of each label, with values that the schema shows or the queries compare with."""
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, Any]] = []
    by_label: dict[str, list[str]] = {}
    taken: set[tuple[str, str]] = set()
    labels = {one[side] for one in described["relationships"] for side in ("start", "end")}
    for label in dict.fromkeys((*described["node_props"], *sorted(labels))):
        for number in range(30):
            row = {
                f"{one['property']}_" if one["property"] in ("key", "type", "name", "text") else one["property"]: value
                for one in described["node_props"].get(label, ())
                if (value := _made_up(one, queries, chance)) is not None and one["property"] not in NAMED
            }
            named = [one for one in described["node_props"].get(label, ()) if one["property"] in NAMED]
            name = str(_made_up(named[0], queries, chance)) if named else f"{label} {number}"
            name = f"{name} {number}" if (label, name) in taken else name
            taken.add((label, name))
            row |= {one["property"]: name for one in named if one["property"] != "name"}
            nodes.append({"key": f"{label}:{number}", "type": label, "name": name, **row})
            by_label.setdefault(label, []).append(f"{label}:{number}")
    for one in described["relationships"]:
        properties = described["rel_props"].get(one["type"], ())
        pairs = {(chance.choice(by_label[one["start"]]), chance.choice(by_label[one["end"]])) for _ in range(60)}
        for head, tail in sorted(pairs):
            told = {part["property"]: _made_up(part, queries, chance) for part in properties}
            edges.append({"head": head, "relation": one["type"], "tail": tail, **told})
    return tables_of(nodes, edges)


def _made_up(described: dict[str, Any], queries: str, chance: random.Random) -> Any:
    kind, name = described["type"], re.escape(described["property"])
    asked = re.findall(rf"\.{name}\s*(?:=|CONTAINS|STARTS WITH|>|<|>=|<=)\s*['\"]?([\w .,&:/-]+)", queries)
    asked += re.findall(rf"{name}: *['\"]([^'\"]+)['\"]", queries)
    if kind in ("INTEGER", "FLOAT"):
        bounds = [str(described.get(name, "")) for name in ("min", "max")]
        low, high = (
            float(one) if re.fullmatch(r"-?\d+(\.\d+)?", one) else at for one, at in zip(bounds, (0, 100), strict=True)
        )
        value = chance.uniform(low, high)
        near = [float(one) for one in asked if re.fullmatch(r"-?\d+(\.\d+)?", one.strip())]
        value = chance.choice(near) + chance.choice((-1, 0, 1, 2)) if near and chance.random() < 0.5 else value
        return int(value) if kind == "INTEGER" else round(value, 2)
    if kind == "STRING":
        known = [one.strip() for one in asked if one.strip()] + list(described.get("values", ()))
        return chance.choice(known or ["alpha", "beta", "gamma"])
    if kind in ("DATE", "DATE_TIME", "LOCAL_DATE_TIME"):
        return f"{chance.randint(1940, 2022)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
    return chance.choice(("true", "false")) if kind == "BOOLEAN" else None


def judged(answer: Answer, case: dict[str, Any], base: clew.Base) -> str:
    """Whether an answer has the rows of the gold, in any order of rows and columns.

    A node counts as any one of its attributes. Gold queries often show a column that was not asked for, and cut ties
    at a limit: rows that lack such a column, keep the ties, or are others of the same rank, are told apart.
    """
    gold = case["gold"]
    is_limited = " first " in case["query"] or "LIMIT" in case["query"].upper()
    rows: list[tuple[Any, ...]] = [tuple(row) for row in answer.rows]
    if not rows:
        rows = [(answer.value,)] if answer.value is not None else [(one.node,) for one in answer.matches]
    if not rows or len(rows[0]) > 2 * MOST_COLUMNS:
        return "wrong"
    found, wanted = _shown(rows, base), _shown(gold, base)
    same, tied = _agree(found, wanted, len(gold[0]), is_limited)
    if same:
        return "right"
    if tied:
        return "right, with ties"
    for width in range(len(gold[0]) - 1, 0, -1) if len(rows[0]) < len(gold[0]) else ():
        same, tied = _agree(found, wanted, width, is_limited)
        if same or tied:
            return "right, fewer columns"
    if len(rows) == len(gold) < len(case.get("equal", ())):
        every = _shown(case["equal"], base)
        for width in range(min(len(rows[0]), len(gold[0])), 0, -1):
            wanted_rows = [Counter(zip(*way, strict=True)) for way in _ways(every, width)]
            if any(Counter(zip(*way, strict=True)) <= one for way in _ways(found, width) for one in wanted_rows):
                return "right, others of the same rank"
    return "wrong"


def _shown(rows: list[tuple[Any, ...]], base: clew.Base) -> list[list[tuple[Any, ...]]]:
    """For each column the ways to show it: a node by its name, its key or one of its attributes."""
    kb, options = base.tools.kb, []
    for column in zip(*rows, strict=True):
        nodes = [one for one in column if isinstance(one, NodeRef)]
        if not nodes:
            options.append([_row(None if one is None else str(one) for one in column)])
            continue
        names = ["name", "key", *dict.fromkeys(name for one in nodes for name in kb.node(one.id).attributes)]
        options.append([_row(None if one is None else str(_told(kb, one, name)) for one in column) for name in names])
    return options


def _told(kb: Any, node: NodeRef, name: str) -> Any:
    return getattr(node, name) if name in ("name", "key") else kb.node(node.id).attributes.get(name)


def _agree(found: Any, wanted: Any, width: int, is_limited: bool) -> tuple[bool, bool]:
    """Whether some way to show `width` columns of both has the same rows, and whether ties are the only difference."""
    theirs = {
        frozenset(Counter(zip(*way, strict=True)).items()): set(zip(*way, strict=True)) for way in _ways(wanted, width)
    }
    tied = False
    for way in _ways(found, width):
        own = Counter(zip(*way, strict=True))
        if frozenset(own.items()) in theirs or set(own) in theirs.values():
            return True, False
        tied = tied or (is_limited and any(gold < set(own) for gold in theirs.values()))
    return False, tied


def _ways(options: list[list[tuple[Any, ...]]], width: int) -> Any:
    """Every way to show `width` of the columns, in any order."""
    for places in permutations(range(len(options)), min(width, len(options))):
        if len(places) == width:
            yield from islice(product(*(options[place] for place in places)), 2000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--spider", type=int, default=100)
    parser.add_argument("--cypher", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", type=int, default=10)
    given = parser.parse_args()
    corpora = {
        "spider": spider_cases(given.data, given.work, given.spider, given.seed),
        "text2cypher": cypher_cases(given.data, given.work, given.cypher, given.seed),
    }
    for corpus, cases in corpora.items():
        outcomes: Counter[str] = Counter()
        wrong = []
        for case in cases:
            base = clew.open(case["base"], model=given.model)
            try:
                answer = base.ask(case["question"], "focus_plus", write=False)
            except PendingError:
                outcomes["waits for the model"] += 1
                continue
            told = judged(answer, case, base)
            outcomes[told if told != "wrong" else f"wrong, {answer.state}"] += 1
            if told == "wrong":
                said = answer.query.get("query", answer.query.get("text"))
                wrong.append({**case, "said": answer.text, "understood": said})
        print(corpus, dict(outcomes))
        for one in wrong[: given.show]:
            print(json.dumps({name: str(one[name])[:300] for name in one}, indent=1))


if __name__ == "__main__":
    main()
