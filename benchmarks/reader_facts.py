"""Questions over bare facts as a source for `clew train reader`: those of MetaQA, PathQuestion and WebQSP.

    python benchmarks/reader_facts.py DATA FOLDER     DATA holds metaqa, pathquestion and webqsp

The path of each question is found by following every path from its topic and keeping one that leads to exactly the
answers (for WebQSP: nearly). Only half of the questions are taken, by a checksum of their words (`is_taught`): figures
on these sets are to be measured on the other half.
"""

import json
import random
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clew.answering.reading.vocabulary import Vocabulary
from clew.core.types import NodeSet
from clew.lab.datasets.base import dataset_base
from clew.lab.datasets.load import load_dataset
from clew.store.graph.protocol import KnowledgeBase
from clew.store.open_base import OpenBase

TAKEN = 400
WIDEST = 3000
MOST_PATHS = 20_000
GROUP, NEAR = 25, 70
"""A base of thousands of relations becomes several schemas, each of so many questions and relations around them."""
Path_ = tuple[int, ...]


def is_taught(question: str) -> bool:
    return zlib.crc32(question.encode()) % 2 == 0


@dataclass(frozen=True)
class Taught:
    question: str
    topic: str
    node: int
    path: Path_


def existing(kb: KnowledgeBase, known: Vocabulary, node: int, depth: int) -> Iterator[tuple[Path_, NodeSet]]:
    """Every path from a node with where it ends; hops by their places in the vocabulary."""
    places = defaultdict(list)
    for place, hop in enumerate(known.hops):
        places[hop.relation, hop.direction].append(place)
    (kind,) = (ref.type for ref in kb.refs([node]))
    front: list[tuple[Path_, str, NodeSet]] = [((), kind, NodeSet.of([node]))]
    count = 0
    for _ in range(depth):
        found = []
        for path, start, nodes in front:
            if len(nodes) > WIDEST or count > MOST_PATHS:
                continue
            for use in kb.relations(nodes):
                ends = kb.neighbors(nodes, use.relation, use.direction)
                for place in places[use.relation, use.direction]:
                    hop = known.hops[place]
                    own = ends & kb.nodes(hop.end)
                    if hop.start == start and len(own):
                        found.append(((*path, place), hop.end, own))
                        count += 1
        yield from ((path, nodes) for path, _, nodes in found)
        front = found


def taught(spec: str, depth: int, *, least: float) -> tuple[KnowledgeBase, Vocabulary, list[Taught]]:
    dataset = load_dataset(spec)
    tools = OpenBase.open(dataset_base(dataset))
    kb, known = tools.kb, Vocabulary(tools.kb.schema)
    questions = [one for one in dataset.questions if is_taught(one.text)]
    random.Random(0).shuffle(questions)
    fitting, votes = [], defaultdict(Counter)
    for one in questions[:TAKEN]:
        links = [link for link in tools.names.link(one.topics[0], k=1) if link.how == "exact"] if one.topics else []
        if not links:
            continue
        node, answers = links[0].node, set(one.answers)
        good: list[tuple[float, Path_]] = []
        for path, ends in existing(kb, known, node, depth):
            if len(ends) <= len(answers) + 3:
                names = {ref.name for ref in kb.refs(ends.array)}
                alike = max(
                    2 * len(some & answers) / (len(some) + len(answers)) for some in (names, names - {one.topics[0]})
                )
                if alike >= least:
                    good.append((alike, path))
        if good:
            best = max(alike for alike, _ in good)
            paths = [path for alike, path in good if alike == best]
            length = depth if least > 0.9 and any(len(path) == depth for path in paths) else min(map(len, paths))
            paths = [path for path in paths if len(path) == length]
            votes[one.type].update(paths)
            fitting.append((one, node, paths))
    return (
        kb,
        known,
        [
            Taught(plain, one.topics[0], node, max(paths, key=lambda path: votes[one.type][path]))
            for one, node, paths in fitting
            if one.topics[0].lower() in (plain := one.text.replace("[", "").replace("]", "")).lower()
        ],
    )


def lines(
    name: str, known: Vocabulary, kb: KnowledgeBase, some: list[Taught], rows: set[int]
) -> tuple[dict, list[dict]]:
    """A schema of these rows of relations, and the questions over it."""
    schema = known.schema
    kept = [schema.relations[row] for row in sorted(rows)]
    relations = [{"name": row.name, "head": row.head, "tail": row.tail, "description": row.description} for row in kept]
    types = [{"name": one.name, "description": one.description, "attributes": []} for one in schema.node_types]
    questions = []
    for one in some:
        start = one.question.lower().find(one.topic.lower())
        text = one.question[start : start + len(one.topic)]
        terms = [one.topic, *(f"?x{place}" for place in range(1, len(one.path))), "?x"]
        triplets, variables = [], {}
        for place, first, second in zip(one.path, terms, terms[1:], strict=False):
            hop = known.hops[place]
            variables[second] = hop.end
            triplets.append([first, hop.relation, second] if hop.direction == "out" else [second, hop.relation, first])
        (ref,) = kb.refs([one.node])
        query = {"answer": "?x", "variables": variables, "triplets": triplets}
        mentions = [{"text": text, "name": one.topic, "type": ref.type}]
        kind = {1: "one-hop", 2: "two-hop", 3: "three-hop"}[len(one.path)]
        questions.append({"schema": name, "kind": kind, "question": one.question, "mentions": mentions, "query": query})
    return {"schema": name, "types": types, "relations": relations}, questions


def near(kb: KnowledgeBase, known: Vocabulary, some: list[Taught]) -> set[int]:
    """The relations of some questions and those that are most frequent around their topics."""
    rows = {hop // 2 for one in some for hop in one.path}
    code, count = {row.name: place for place, row in enumerate(known.schema.relations)}, Counter()
    for one in some:
        for use in kb.relations(NodeSet.of([one.node])):
            count[code[use.relation]] += 1
    return rows | {row for row, _ in count.most_common(NEAR)}


def main(data: str, folder: str) -> None:
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    schemas, questions = [], []
    sets = [(f"metaqa{n}", f"metaqa:{data}/metaqa:{n}-hop-dev", n, 0.99) for n in (1, 2, 3)]
    sets += [(f"pathquestion{n}", f"pathquestion:{data}/pathquestion:PQ-{n}H", n, 0.99) for n in (2, 3)]
    sets += [("webqsp", f"webqsp:{data}/webqsp:questions_dev", 2, 0.8)]
    for name, spec, depth, least in sets:
        kb, known, every = taught(spec, depth, least=least)
        size = GROUP if name == "webqsp" else max(1, len(every))
        for begin in range(0, len(every), size):
            some = every[begin : begin + size]
            rows = near(kb, known, some) if name == "webqsp" else set(range(len(known.schema.relations)))
            schema, own = lines(f"{name}-{begin // size}", known, kb, some, rows)
            schemas.append(schema)
            questions += own
        print(name, len(every), "questions", flush=True)
    for kind, rows in (("schemas", schemas), ("questions", questions)):
        (out / f"{kind}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
