"""Cases with gold for each role, from real data sets; the same seed gives the same cases."""

import gzip
import json
import os
import random
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from clew.core.query import Named, constants
from clew.core.roles import Choice, Claim, Draft, Interpretation, Reading, Source
from clew.lab.datasets.load import load_dataset
from clew.store.building import build
from clew.store.graph.arrays import ArrayKnowledgeBase

DATA = Path(os.environ.get("CLEW_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
RELATION = {
    "director": "directed_by",
    "actor": "starred_actors",
    "writer": "written_by",
    "genre": "has_genre",
    "year": "release_year",
    "language": "in_language",
    "tags": "has_tags",
    "tag": "has_tags",
    "imdbrating": "has_imdb_rating",
    "imdbvotes": "has_imdb_votes",
}
Path_ = tuple[tuple[str, bool], ...]
"""Relations from the topic to the answer; True where an edge is followed backwards."""


def gold_path(kind: str) -> Path_:
    """`director_to_movie_to_year` → directed_by backwards, release_year forwards."""
    stops = kind.split("_to_")
    return tuple(
        (RELATION[here], True) if there == "movie" else (RELATION[there], False) for here, there in pairwise(stops)
    )


def query_path(asked: Interpretation) -> tuple[str, Path_] | None:
    """The topic and the relations of a query that is one chain from a single name to the target; None otherwise."""
    names, edges = constants(asked.query), list(asked.query.pattern.edges)
    if len(names) != 1 or not asked.is_plain or any(edge.relation is None for edge in edges):
        return None
    here: str | Named = names[0]
    path: list[tuple[str, bool]] = []
    while edges:
        following = [edge for edge in edges if here in (edge.head, edge.tail)]
        if len(following) != 1:
            return None
        edges.remove(following[0])
        backwards = following[0].tail == here
        path.append((following[0].relation, backwards))
        here = following[0].head if backwards else following[0].tail
    return (names[0].text, tuple(path)) if here == asked.variable else None


def path_in_words(path: Path_) -> str:
    return ", then ".join(f"{name} (backwards)" if backwards else name for name, backwards in path)


def metaqa_base(folder: Path) -> ArrayKnowledgeBase:
    if not folder.exists():
        build(load_dataset(f"metaqa:{DATA / 'metaqa'}:1-hop-dev").base, folder)
    return ArrayKnowledgeBase.open(folder)


@dataclass(frozen=True)
class ParseCase:
    question: str
    topic: str
    path: Path_


def parse_cases(n: int, seed: int = 0) -> list[ParseCase]:
    """MetaQA dev, one and two hops in equal parts, without the marks around the topic."""
    cases = []
    for hops in (1, 2):
        dataset = load_dataset(f"metaqa:{DATA / 'metaqa'}:{hops}-hop-dev")
        for question in random.Random(seed).sample(dataset.questions, n // 2):
            text = re.sub(r"[\[\]]", "", question.text)
            cases.append(ParseCase(text, question.topics[0], gold_path(question.type)))
    return cases


def choose_cases(n: int, options: int, seed: int = 1) -> list[tuple[Choice, int]]:
    """MetaQA dev, two hops: the gold relation path among others of the same data set that begin at the same kind."""
    chance = random.Random(seed)
    dataset = load_dataset(f"metaqa:{DATA / 'metaqa'}:2-hop-dev")
    paths = sorted({gold_path(question.type) for question in dataset.questions})
    cases = []
    for question in chance.sample(dataset.questions, n):
        gold = gold_path(question.type)
        near = [path for path in paths if path != gold and path[0][1] == gold[0][1]]
        others = chance.sample(near, min(options - 1, len(near)))
        place = chance.randrange(len(others) + 1)
        shown = [path_in_words(path) for path in (*others[:place], gold, *others[place:])]
        text = re.sub(r"\[[^\]]*\]", "X", question.text)
        cases.append((Choice(text, tuple(shown), kind="relation path", given="the path begins at X"), place))
    return cases


def score_cases(n: int, seed: int = 2) -> list[tuple[Claim, bool]]:
    """STaRK-PRIME (reduced base) validation questions: a right answer and four others of its type for each."""
    chance = random.Random(seed)
    folder = DATA / "stark_prime_mini"
    with gzip.open(folder / "nodes.jsonl.gz", "rt", encoding="utf-8") as file:
        nodes = {node["id"]: node for node in map(json.loads, file)}
    of_type: dict[str, list[int]] = {}
    for node in nodes.values():
        of_type.setdefault(node["type"], []).append(node["id"])
    with (folder / "queries.jsonl").open(encoding="utf-8") as file:
        queries = [query for query in map(json.loads, file) if query["split"] != "train"]
    chance.shuffle(queries)
    cases: list[tuple[Claim, bool]] = []
    for query in queries:
        right = [answer for answer in query["answer_ids"] if answer in nodes]
        if not right or len(cases) >= n:
            continue
        gold = chance.choice(right)
        others = [node for node in of_type[nodes[gold]["type"]] if node not in query["answer_ids"]]
        for node in (gold, *chance.sample(others, min(4, len(others)))):
            cases.append((Claim(query["query"], nodes[node]["name"], nodes[node].get("text") or ""), node == gold))
    return cases


@dataclass(frozen=True)
class WriteCase:
    draft: Draft
    candidates: tuple[str, ...]
    gold: int


def write_cases(n: int, seed: int = 3) -> list[WriteCase]:
    """HotpotQA and 2Wiki bridges: with the first supporting paragraph known, which of the others is the second?"""
    cases = []
    for spec in (
        f"hotpotqa:{DATA / 'hotpotqa' / 'dev_distractor_200.jsonl.gz'}",
        f"2wiki:{DATA / '2wiki' / 'train_500.jsonl.gz'}",
    ):
        dataset = load_dataset(spec)
        paragraphs = {paragraph.key: paragraph for paragraph in dataset.paragraphs}
        for question in dataset.questions:
            if question.type not in ("bridge", "compositional", "inference") or len(question.passages) != 2:
                continue
            first, second = question.passages
            others = [key for key in dataset.contexts[question.id] if key != first]
            texts = tuple(f"{paragraphs[key].title}. {paragraphs[key].text}" for key in others)
            known = f"{paragraphs[first].title}: {paragraphs[first].text}"
            cases.append(WriteCase(Draft(question.text, (known,)), texts, others.index(second)))
    return random.Random(seed).sample(cases, min(n, len(cases)))


@dataclass(frozen=True)
class ReadCase:
    reading: Reading
    answers: tuple[str, ...]
    supporting: frozenset[int]


def read_cases(n: int) -> list[ReadCase]:
    """HotpotQA dev, distractor setting: ten paragraphs each."""
    dataset = load_dataset(f"hotpotqa:{DATA / 'hotpotqa' / 'dev_distractor_200.jsonl.gz'}")
    paragraphs = {paragraph.key: paragraph for paragraph in dataset.paragraphs}
    cases = []
    for question in dataset.questions[:n]:
        keys = dataset.contexts[question.id]
        sources = tuple(Source(paragraphs[key].text, paragraphs[key].title) for key in keys)
        supporting = frozenset(place for place, key in enumerate(keys) if key in question.passages)
        cases.append(ReadCase(Reading(question.text, sources), question.answers, supporting))
    return cases


def answer_cases(n: int, seed: int = 4) -> list[tuple[str, tuple[str, ...]]]:
    """Mintaka dev questions whose answer is an entity: closed-book candidate answers."""
    dataset = load_dataset(f"mintaka:{DATA / 'mintaka' / 'mintaka_dev.json.gz'}")
    named = [q for q in dataset.questions if q.aliases and q.type not in ("count", "yesno")]
    chosen = random.Random(seed).sample(named, n)
    return [(q.text, (*q.answers, *(name for names in q.aliases.values() for name in names))) for q in chosen]
