"""A relation path as evidence and as a formal query: the walk behind each answer, text that finds the same nodes."""

from __future__ import annotations

import json

from clew.core.types import NodeSet, Path
from clew.kb.protocol import KnowledgeBase
from clew.kb.rdf_export import node_iri, relation_iri
from clew.steps.paths.relation_paths import Explorer, RelationPath, is_return
from clew.steps.paths.trails import Step, Trail, paths

MOST_KEYS = 50
"""A formal query names at most this many nodes of a topic."""


def evidence(explorer: Explorer, path: RelationPath, answers: list[int]) -> list[Path]:
    """For each answer one walk from the topic to it, as facts."""
    layers = [path.topic]
    for move in path.moves:
        layers.append(explorer.walk(layers[-1], move))
    return paths(explorer.kb, [_trail(explorer, path, layers, answer) for answer in answers])


def _trail(explorer: Explorer, path: RelationPath, layers: list[NodeSet], answer: int) -> Trail:
    steps: list[Step] = []
    here = answer
    for place in reversed(range(len(path.moves))):
        move = path.moves[place]
        steps.append(Step(move.relation, move.direction, here))
        earlier = explorer.walk(NodeSet.of([here]), move.back) & layers[place]
        elsewhere = earlier - path.topic if place else earlier
        here = int((elsewhere if len(elsewhere) else earlier).array[0])
    return Trail(here, tuple(reversed(steps)))


def formal_query(kb: KnowledgeBase, path: RelationPath) -> dict[str, str]:
    """The path in words, as SPARQL and as Cypher."""
    keys = [ref.key for ref in kb.refs(path.topic.array[:MOST_KEYS])]
    return {"path": path.in_words(), "sparql": _sparql(path, keys), "cypher": _cypher(path, keys)}


def _apart(path: RelationPath) -> set[int]:
    """The variables that must not be the topic: where the path takes a relation back, or passes a nameless node."""
    apart, place = set(), 0
    before = None
    for hop in path.hops:
        place += len(hop)
        if is_return(before, hop) or len(hop) == 2:
            apart.add(place)
        before = hop
    return apart


def _sparql(path: RelationPath, keys: list[str]) -> str:
    topic = " ".join(f"<{node_iri(key)}>" for key in keys)
    lines = [f"  VALUES ?x0 {{ {topic} }}"]
    apart = _apart(path)
    for place, move in enumerate(path.moves, 1):
        ends = (place - 1, place) if move.direction == "out" else (place, place - 1)
        lines.append(f"  ?x{ends[0]} <{relation_iri(move.relation)}> ?x{ends[1]} .")
        if place in apart:
            lines.append(f"  FILTER(?x{place} NOT IN ({topic.replace(' ', ', ')}))")
    return "\n".join([f"SELECT DISTINCT ?x{len(path.moves)} WHERE {{", *lines, "}"])


def _cypher(path: RelationPath, keys: list[str]) -> str:
    pattern = "(x0)"
    for place, move in enumerate(path.moves, 1):
        name = move.relation.replace("`", "``")
        pattern += f"-[:`{name}`]->(x{place})" if move.direction == "out" else f"<-[:`{name}`]-(x{place})"
    listed = json.dumps(keys, ensure_ascii=False)
    conditions = [f"x0.key IN {listed}", *(f"NOT x{place}.key IN {listed}" for place in sorted(_apart(path)))]
    return f"MATCH {pattern}\nWHERE {' AND '.join(conditions)}\nRETURN DISTINCT x{len(path.moves)}.key AS key"
