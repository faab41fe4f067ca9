"""Think-on-Graph (Sun et al., ICLR 2024): beam search over the graph, the model choosing where to go next.

1  begin at the topic entities of the question
2  relations: of those that leave or enter the end of each trail keep the best `width`
3  entities: behind them (a sample of 5 where there are 20 or more) keep the best `width` trails in all
4  enough? Read the facts of the trails; stop when they hold an answer, or at `depth`
5  answer with what was read, where it names a node of the trails, then with the ends of the trails

Deviation from the paper: options are chosen, not scored by a model that must spell out numbers; small models cannot.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from clew.core.roles import Choice, Chooser, Read, Reader, Reading, Source
from clew.core.trace import span
from clew.core.types import Answer, Candidate, NodeSet
from clew.kb.protocol import KnowledgeBase
from clew.methods.paths.execution import Trail, extend, in_words, leads, paths
from clew.methods.protocol import Method
from clew.methods.role_choice import chooser_for, reader_for
from clew.queries.certificates import certificate
from clew.queries.path_claims import claim_of_walk
from clew.queries.relation_paths import Move, RelationPath
from clew.reading.paths.topics import find_topics
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class ThinkOnGraph(Method):
    """A beam of walks from the topic entities, a model choosing relations and entities."""

    name = "think_on_graph"
    width: int = 3
    depth: int = 3
    seed: int = 0
    topics: tuple[str, ...] = ()

    def answer(self, question: str, tools: Toolbox) -> Answer:
        """The node that was read, where there is one, then the ends of the trails."""
        kb, chooser, reader = tools.kb, chooser_for(tools), reader_for(tools)
        rng = random.Random(self.seed)
        found = find_topics(question, tools.names, self.topics)
        starts = NodeSet.of([node for topic in found.topics for node in topic.nodes])
        trails = [Trail(node) for node in starts][: self.width]  # 1
        read = Read(None)
        for depth in range(self.depth):
            with span("think", depth=depth + 1, trails=len(trails)):
                leading = self._relations(found.question, trails, rng, kb, chooser)  # 2
                grown = self._entities(found.question, leading, kb, chooser)  # 3
            if not grown:
                break
            trails = grown
            read = _read(found.question, trails, kb, reader)  # 4
            if read.text is not None and _named(read.text, trails, kb) is not None:
                break
        return _answered(question, trails, read, kb)  # 5

    def _relations(
        self, question: str, trails: list[Trail], rng: random.Random, kb: KnowledgeBase, chooser: Chooser
    ) -> list[Trail]:
        uses = [leads(kb, trail) for trail in trails]
        ends = kb.refs([trail.end for trail in trails])
        choices = [
            Choice(question, tuple(map(in_words, use)), self.width, "relation", f"standing at {end.name}")
            for use, end in zip(uses, ends, strict=True)
        ]
        return [
            longer
            for trail, use, chosen in zip(trails, uses, chooser.choose(choices), strict=True)
            for place in chosen.kept
            for longer in extend(kb, trail, use[place], rng)
        ]

    def _entities(self, question: str, trails: list[Trail], kb: KnowledgeBase, chooser: Chooser) -> list[Trail]:
        options = tuple(path.in_words() for path in paths(kb, trails))
        [chosen] = chooser.choose([Choice(question, options, self.width, "fact")])
        return [trails[place] for place in chosen.kept]


def _read(question: str, trails: list[Trail], kb: KnowledgeBase, reader: Reader) -> Read:
    sources = tuple(Source(path.in_words()) for path in paths(kb, trails))
    [read] = reader.read([Reading(question, sources)])
    return read


def _named(text: str, trails: list[Trail], kb: KnowledgeBase) -> Trail | None:
    """The trail that ends at the node a reader named."""
    ends = kb.refs([trail.end for trail in trails])
    wanted = text.strip().casefold()
    return next((trail for trail, end in zip(trails, ends, strict=True) if end.name.casefold() == wanted), None)


def _answered(question: str, trails: list[Trail], read: Read, kb: KnowledgeBase) -> Answer:
    walked = [trail for trail in trails if trail.steps]
    named = None if read.text is None else _named(read.text, walked, kb)
    ordered = ([named] if named else []) + [trail for trail in walked if trail is not named]
    refs = kb.refs([trail.end for trail in ordered])
    candidates: dict[int, Candidate] = {}
    for place, (ref, path) in enumerate(zip(refs, paths(kb, ordered), strict=True)):
        candidates.setdefault(ref.id, Candidate(ref, 1 / (1 + place), (path,)))
    notes = () if trails else ("no topic entity was found: mark it as [Name] or give it with -O topics=NAME",)
    return Answer(
        question,
        tuple(candidates.values()),
        text=read.text,
        answer_count=1,
        notes=notes,
        query=_query(ordered[0], kb) if ordered else {},
    )


def _query(trail: Trail, kb: KnowledgeBase) -> dict[str, Any]:
    """That the walk is there which leads to the answer: which of its ends is meant, the walk alone does not say."""
    path = RelationPath(
        NodeSet.of([trail.start]),
        tuple((Move(s.relation, "out" if s.direction == "out" else "in"),) for s in trail.steps),
    )
    return {"path": path.in_words(), **certificate(claim_of_walk(path, trail.end), kb), "matches": 1}
