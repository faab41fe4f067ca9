"""The share of questions that the model-free parser reads exactly right: HPO questions with gold queries, MetaQA dev.

A query is right if its triplets, negations, counts and target type are those of the gold query, up to the names of
variables, if every constant stands for exactly the gold nodes, and if it requires nothing else. Prints JSON.

usage: python benchmarks/parsing.py hpo KB [FILE]      python benchmarks/parsing.py metaqa KB FOLDER [--limit 500]
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clew.answering.methods.role_choice import reader_parser
from clew.answering.queries.linking import ground
from clew.core.query import Edge as QueryEdge
from clew.core.query import Exists, Named, Not, constants
from clew.core.roles import Interpretation
from clew.lab.datasets.load import load_dataset
from clew.store.open_base import OpenBase

Edge = tuple[bool, str, str | None, str]
TARGET = "?"
ROLES = {"actor": "starred_actors", "director": "directed_by", "writer": "written_by", "genre": "has_genre",
         "language": "in_language", "year": "release_year", "tags": "has_tags", "tag": "has_tags",
         "imdbrating": "has_imdb_rating", "imdbvotes": "has_imdb_votes"}  # fmt: skip
"""The relation behind each role in MetaQA's question types: actor_to_movie_to_director."""


def canonical(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """The same for any names of the variables besides the target."""
    known = list(edges)
    names = sorted({end for _, head, _, tail in known for end in (head, tail) if end.startswith("?") and end != TARGET})
    forms = []
    for order in itertools.permutations(range(len(names))):
        renamed = {name: f"?{place}" for name, place in zip(names, order, strict=True)}
        forms.append(tuple(sorted((no, renamed.get(h, h), r or "", renamed.get(t, t)) for no, h, r, t in known)))
    return min(forms)


def edges_of(asked: Interpretation, toolbox: OpenBase) -> tuple[Edge, ...]:
    """A parsed query with its constants as the keys of the nodes they stand for."""
    groundings = ground(constants(asked.query), toolbox.names)

    def shown(end: Any) -> str:
        if isinstance(end, str):
            return TARGET if end == asked.variable else f"?{end}"
        assert isinstance(end, Named)
        return " ".join(sorted(ref.key for ref in toolbox.kb.refs(groundings[end].nodes.array)))

    def row(edge: QueryEdge, negated: bool) -> Edge:
        return negated, shown(edge.head), edge.relation, shown(edge.tail)

    pattern = asked.query.pattern
    denied = [edge for part in pattern.where for edge in forbidden(part)]
    return canonical([*(row(edge, False) for edge in pattern.edges), *(row(edge, True) for edge in denied)])


def forbidden(formula: Any) -> tuple[QueryEdge, ...]:
    """The edges of a forbidden pattern."""
    match formula:
        case Not(Exists(pattern)):
            return pattern.edges
    return ()


def gold_edges(record: Mapping[str, Any]) -> tuple[Edge, ...]:
    """The gold query of a line of tests/data/hpo_queries.jsonl."""

    def shown(term: Any) -> str:
        if isinstance(term, str):
            return TARGET if term == f"?{record['target']}" else term
        return " ".join(sorted(term["keys"]))

    return canonical(
        (t.get("negated", False), shown(t["head"]), t["relation"], shown(t["tail"])) for t in record["triplets"]
    )


def requires_more(asked: Interpretation) -> bool:
    """Whether a query has parts that no gold query has: conditions, the most or least, given answers, alternatives."""
    return bool(asked.query.order) or not all(map(forbidden, asked.query.pattern.where))


def is_right(asked: Interpretation, record: Mapping[str, Any], toolbox: OpenBase) -> bool:
    """Whether a parse equals a gold query of the HPO file."""
    return (
        not requires_more(asked)
        and edges_of(asked, toolbox) == gold_edges(record)
        and asked.type == record["target"]
        and asked.asks == record.get("asks", "nodes")
        and not record.get("counts")
    )


def metaqa_gold(kind: str, topic: str) -> tuple[Edge, ...]:
    """The gold query behind a MetaQA question type, from the topic to the target."""
    roles, edges, here = kind.split("_to_"), [], topic
    for place, (first, second) in enumerate(itertools.pairwise(roles), start=1):
        there = TARGET if place == len(roles) - 1 else f"?{place}"
        edges.append((False, here, ROLES[second], there) if first == "movie" else (False, there, ROLES[first], here))
        here = there
    return canonical(edges)


def report(name: str, outcomes: list[bool], seconds: list[float], wrong: list[str]) -> None:
    print(json.dumps({
        "set": name, "n": len(outcomes), "exactly_right": round(sum(outcomes) / len(outcomes), 4),
        "parse_ms": {"p50": round(statistics.median(seconds) * 1000, 2), "max": round(max(seconds) * 1000, 1)},
        "wrong": wrong[:20],
    }, ensure_ascii=False, indent=1))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["hpo", "metaqa"])
    parser.add_argument("base", type=Path)
    parser.add_argument(
        "source", type=Path, nargs="?", default=Path(__file__).parent.parent / "tests/data/hpo_queries.jsonl"
    )
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    toolbox = OpenBase.open(options.base)
    reader = reader_parser(toolbox)

    def measured(name: str, questions: list[tuple[str, Any]], right: Any) -> None:
        outcomes, seconds, wrong = [], [], []
        for text, gold in questions:
            begun = time.perf_counter()
            query = reader.parse(text, toolbox.kb.schema).interpretation
            seconds.append(time.perf_counter() - begun)
            outcomes.append(right(query, gold))
            if not outcomes[-1]:
                wrong.append(f"{text} → {query.query}")
        report(name, outcomes, seconds, wrong)

    def is_path(query: Interpretation, gold: tuple[Edge, ...]) -> bool:
        return not requires_more(query) and query.asks == "nodes" and edges_of(query, toolbox) == gold

    if options.what == "hpo":
        records = [json.loads(line) for line in options.source.read_text("utf-8").splitlines()]
        measured("hpo", [(r["question"], r) for r in records], lambda query, gold: is_right(query, gold, toolbox))
        return
    for hops in (1, 2):
        questions = list(load_dataset(f"metaqa:{options.source}:{hops}-hop-dev").questions)
        if options.limit:
            questions = random.Random(0).sample(questions, options.limit)
        gold = [(q.text, metaqa_gold(q.type or "", q.topics[0])) for q in questions]
        measured(f"metaqa {hops}-hop dev", gold, is_path)


if __name__ == "__main__":
    main()
