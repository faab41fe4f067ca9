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

from clew.core.roles import Choice, Chooser, Read, Reader, Reading, Source
from clew.core.trace import span
from clew.core.types import Answer, Candidate, NodeSet
from clew.index.protocol import Names
from clew.kb.protocol import KnowledgeBase
from clew.methods.paths.execution import Trail, extend, in_words, leads, paths
from clew.reading.paths.topics import find_topics
from clew.roles.choose import ModelChooser, ScoredChooser
from clew.roles.read import BestSpan, ModelReader
from clew.roles.score import FusedScorer
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class ThinkOnGraph:
    """A beam of walks from the topic entities, a model choosing relations and entities."""

    kb: KnowledgeBase
    names: Names
    chooser: Chooser
    reader: Reader
    model: str = "none"
    width: int = 3
    depth: int = 3
    seed: int = 0
    topics: tuple[str, ...] = ()

    @classmethod
    def build(
        cls, toolbox: Toolbox, width: int = 3, depth: int = 3, seed: int = 0, topics: tuple[str, ...] = ()
    ) -> ThinkOnGraph:
        """With the toolbox's model where there is one."""
        model = toolbox.model
        chooser = ScoredChooser(FusedScorer(toolbox.embedder)) if model is None else ModelChooser(model)
        reader = BestSpan() if model is None else ModelReader(model)
        name = "none" if model is None else model.name
        return cls(toolbox.kb, toolbox.names, chooser, reader, name, width, depth, seed, topics)

    def answer(self, question: str) -> Answer:
        """The node that was read, where there is one, then the ends of the trails."""
        rng = random.Random(self.seed)
        found = find_topics(question, self.names, self.topics)
        starts = NodeSet.of([node for topic in found.topics for node in topic.nodes])
        trails = [Trail(node) for node in starts][: self.width]  # 1
        read = Read(None)
        for depth in range(self.depth):
            with span("think", depth=depth + 1, trails=len(trails)):
                grown = self._entities(found.question, self._relations(found.question, trails, rng))  # 2, 3
            if not grown:
                break
            trails = grown
            read = self._read(found.question, trails)  # 4
            if read.text is not None and self._named(read.text, trails) is not None:
                break
        return self._answered(question, trails, read)  # 5

    def _relations(self, question: str, trails: list[Trail], rng: random.Random) -> list[Trail]:
        uses = [leads(self.kb, trail) for trail in trails]
        ends = self.kb.refs([trail.end for trail in trails])
        choices = [
            Choice(question, tuple(map(in_words, use)), self.width, "relation", f"standing at {end.name}")
            for use, end in zip(uses, ends, strict=True)
        ]
        return [
            longer
            for trail, use, chosen in zip(trails, uses, self.chooser.choose(choices), strict=True)
            for place in chosen.kept
            for longer in extend(self.kb, trail, use[place], rng)
        ]

    def _entities(self, question: str, trails: list[Trail]) -> list[Trail]:
        options = tuple(path.in_words() for path in paths(self.kb, trails))
        [chosen] = self.chooser.choose([Choice(question, options, self.width, "fact")])
        return [trails[place] for place in chosen.kept]

    def _read(self, question: str, trails: list[Trail]) -> Read:
        sources = tuple(Source(path.in_words()) for path in paths(self.kb, trails))
        [read] = self.reader.read([Reading(question, sources)])
        return read

    def _named(self, text: str, trails: list[Trail]) -> Trail | None:
        """The trail that ends at the node a reader named."""
        ends = self.kb.refs([trail.end for trail in trails])
        wanted = text.strip().casefold()
        return next((trail for trail, end in zip(trails, ends, strict=True) if end.name.casefold() == wanted), None)

    def _answered(self, question: str, trails: list[Trail], read: Read) -> Answer:
        walked = [trail for trail in trails if trail.steps]
        named = None if read.text is None else self._named(read.text, walked)
        ordered = ([named] if named else []) + [trail for trail in walked if trail is not named]
        refs = self.kb.refs([trail.end for trail in ordered])
        candidates: dict[int, Candidate] = {}
        for place, (ref, path) in enumerate(zip(refs, paths(self.kb, ordered), strict=True)):
            candidates.setdefault(ref.id, Candidate(ref, 1 / (1 + place), (path,)))
        notes = () if trails else ("no topic entity was found: mark it as [Name] or give it with -O topics=NAME",)
        return Answer(
            question,
            "think_on_graph",
            tuple(candidates.values()),
            self.model,
            text=read.text,
            answer_count=1,
            notes=notes,
        )
