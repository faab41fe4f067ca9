"""Questions with gold answers as lessons for the graph network: nodes to start from, nodes to reach."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from clew.core.errors import InputError
from clew.datasets.questions import Question
from clew.kb.arrays import ArrayKnowledgeBase
from clew.queries.relation_paths import OPAQUE
from clew.reading.graph_network import HopPlaces, masked_question
from clew.reading.topics import find_topics
from clew.reading.vocabulary import Vocabulary
from clew.toolbox import Toolbox
from clew.training.qa_gnn import GraphBase, GraphQuestion, Lessons


def graph_base(kb: ArrayKnowledgeBase, name: str) -> GraphBase:
    """A whole base as the network sees it."""
    vocabulary = Vocabulary(kb.schema)
    every = kb.nodes()
    types = np.array([kb.schema.type_code[ref.type] for ref in kb.refs(every.array)], dtype=np.int64)
    edges = kb.edges(every, direction="out")
    heads, tails = edges.heads.astype(np.int64), edges.tails.astype(np.int64)
    hops = HopPlaces(vocabulary).of(edges.relations, types[heads], types[tails])
    known = hops >= 0
    heads, tails, hops = heads[known], tails[known], hops[known]
    return GraphBase(
        name,
        types,
        np.concatenate((heads, tails)),
        np.concatenate((tails, heads)),
        np.concatenate((hops, hops + 1)),
        vocabulary.hop_texts,
        vocabulary.type_texts,
        kb.named_like(OPAQUE.pattern).array.astype(np.int64),
    )


def graph_questions(tools: Toolbox, questions: Sequence[Question]) -> list[GraphQuestion]:
    """Those questions that start from a node of the base and ask for others."""
    kb, vocabulary = tools.kb, Vocabulary(tools.kb.schema)
    named: defaultdict[str, list[int]] = defaultdict(list)
    for ref in kb.refs(kb.nodes().array):
        for text in {ref.key, ref.name}:
            named[text].append(ref.id)
    made = []
    for one in questions:
        topics = find_topics(one.text, tools.names, one.topics).topics
        answers = {node for answer in one.answers for node in named.get(answer, ())}
        if not topics or not answers:
            continue
        kinds = [vocabulary.type_words(kb.refs([int(topic.nodes.array[0])])[0].type) for topic in topics]
        start = {int(node) for topic in topics for node in topic.nodes}
        if answers - start:
            text = masked_question(one.text, topics, kinds)
            made.append(GraphQuestion(text, tuple(sorted(start)), tuple(sorted(answers - start))))
    return made


def graph_lessons(tools: Toolbox, name: str, questions: Sequence[Question], kept: float, seed: int) -> Lessons:
    """A base with its questions, a share of which is kept back."""
    if not isinstance(tools.kb, ArrayKnowledgeBase):
        raise InputError(f"{name}: only an embedded base can be learned from")
    made = graph_questions(tools, questions)
    random.Random(seed).shuffle(made)
    count = round(kept * len(made))
    return Lessons(graph_base(tools.kb, name), made[count:], made[:count])
