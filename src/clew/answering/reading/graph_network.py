"""A network that reads a question and passes messages through the graph around its topics, without torch.

After QA-GNN (Yasunaga et al., NAACL 2021) and the query-dependent networks of NBFNet and GFM-RAG. Messages depend on
the question and on the words for a relation, not on the base. So the network can answer over a base that it was not
trained on.

1  neighborhood: the nodes within `layers` hops of the topics, with each edge walked from both sides
2  question: an encoder reads it, and each layer attends to other words of it
3  messages: a node's state passes each edge through a gate that depends on question and relation
4  scores: states of all layers, compared with the question's vector for the node's type
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clew.answering.queries.relation_paths import nameless_of
from clew.answering.reading.encoders import Floats
from clew.answering.reading.mentions import Topic, mask_topics
from clew.answering.reading.scoring import FOCUS
from clew.answering.reading.vocabulary import Hop, Vocabulary
from clew.core.array_files import read_arrays
from clew.core.errors import ModelError
from clew.core.scores import round_network, round_scores
from clew.core.types import EMPTY, IntArray, NodeSet
from clew.models.embedding.onnx import DIMENSION, SharedWords, cut, embedders_tokenizer
from clew.models.onnx_runtime import open_session
from clew.store.graph.protocol import KnowledgeBase

Places = NDArray[np.int64]
SHIPPED_GRAPH = Path(__file__).parent / "graph_weights"
ENCODER, HEADS, CARD = "encoder.onnx", "heads.npz", "card.json"
LONGEST = 64
"""Maximum length of a question or of the words for a relation, in tokens."""
MOST_EDGES = 300_000
"""Maximum number of edges around the topics. If there are more, the network stops at fewer hops."""
SHUT = 1e-3
"""Value of a closed hop, added to every gate before the logarithm. The widest open gate is 1."""


# 1


@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """Nodes around some topics, and the edges between them as indexes of nodes and hops."""

    nodes: Places
    """Node ids. The topics come first."""
    topics: int
    types: Places
    sources: Places
    targets: Places
    hops: Places
    """Index of each edge's hop in the vocabulary. Edges that are reached first come first."""
    reached: tuple[int, ...]
    """For each layer, the number of edges that start from nodes reached before it."""

    def among_used(self) -> tuple[list[int], list[int], Surroundings]:
        """Return the hops and types that occur here, and a copy that indexes into these lists."""
        used, hops = np.unique(self.hops, return_inverse=True)
        kinds, types = np.unique(self.types, return_inverse=True)
        return used.tolist(), kinds.tolist(), replace(self, hops=hops, types=types)


@dataclass(frozen=True)
class HopPlaces:
    """Looks up the hop of an edge by its relation and the types of its end nodes."""

    vocabulary: Vocabulary

    @cached_property
    def _rows(self) -> tuple[Places, Places]:
        schema = self.vocabulary.schema
        rows = [
            (schema.relation_code[row.name], schema.type_code[row.head], schema.type_code[row.tail])
            for row in schema.relations
        ]
        keys = self._keys(*np.array(rows, dtype=np.int64).reshape(-1, 3).T)
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def _keys(self, relations: Places, heads: Places, tails: Places) -> Places:
        count = len(self.vocabulary.schema.type_names)
        return np.asarray((relations * count + heads) * count + tails, dtype=np.int64)

    def of(self, relations: IntArray, heads: Places, tails: Places) -> Places:
        """Return the hop index of each edge walked from its head, or -1 if the schema has no such relation.

        The hop walked from the tail has the next index.
        """
        known, order = self._rows
        if not len(known):
            return np.full(len(relations), -1, dtype=np.int64)
        keys = self._keys(relations.astype(np.int64), heads, tails)
        found = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[found] == keys, 2 * order[found], -1)


def surroundings(kb: KnowledgeBase, places: HopPlaces, topics: NodeSet, layers: int) -> Surroundings:
    """Return the nodes up to `layers` hops around some nodes, nearest first. Stop before exceeding MOST_EDGES."""
    nodes, types = topics.array.astype(np.int64), _types(kb, topics.array)
    found: list[tuple[Places, Places, Places]] = []
    reached, count, front = [], 0, topics
    for _ in range(layers):
        edges = kb.edges(front, direction="any") if len(front) else None
        if edges is None or count + len(edges) > MOST_EDGES:
            front = EMPTY
            reached.append(count)
            continue
        new = np.setdiff1d(np.union1d(edges.heads, edges.tails), nodes)
        nodes = np.concatenate((nodes, new))
        types = np.concatenate((types, _types(kb, new)))
        order = np.argsort(nodes, kind="stable")
        heads, tails = (order[np.searchsorted(nodes[order], ends)] for ends in (edges.heads, edges.tails))
        hops = places.of(edges.relations, types[heads], types[tails])
        known = hops >= 0
        started = np.isin(nodes, front.array)
        for ends, others, back in ((heads, tails, 0), (tails, heads, 1)):
            own = known & started[ends]
            found.append((ends[own], others[own], hops[own] + back))
        count = sum(len(one[0]) for one in found)
        reached.append(count)
        front = NodeSet.of(new)
    none = [np.zeros(0, dtype=np.int64)]
    sources, targets, hops = (np.concatenate([one[part] for one in found] or none) for part in range(3))
    return Surroundings(nodes, len(topics), types, sources, targets, hops, tuple(reached))


def _types(kb: KnowledgeBase, nodes: IntArray) -> Places:
    if kb.stored is not None:
        return kb.stored.types[nodes].astype(np.int64)
    code = kb.schema.type_code
    return np.array([code[ref.type] for ref in kb.refs(nodes)], dtype=np.int64)


# 2, 3, 4


@dataclass(frozen=True, slots=True, eq=False)
class Heard:
    """Network output for a question: a score for each node, and the gates of each layer by hop."""

    scores: Floats
    """Log-probability of each node being the answer. Topics have -inf."""
    opened: Floats
    """One row per layer. The hop that the layer opens furthest has 1."""

    def walks(self, around: Surroundings) -> Walks:
        """Return the walks whose hops are open furthest."""
        best = np.full(len(around.nodes), -np.inf, dtype=np.float32)
        best[: around.topics] = 0.0
        values, edges = [best], []
        for opened, count in zip(self.opened, around.reached, strict=True):
            through = best[around.sources[:count]] + np.log(opened + SHUT)[around.hops[:count]]
            best = np.full(len(around.nodes), -np.inf, dtype=np.float32)
            np.maximum.at(best, around.targets[:count], through)
            taken = np.full(len(around.nodes), -1, dtype=np.int64)
            kept = np.flatnonzero(np.isfinite(through) & (through == best[around.targets[:count]]))
            taken[around.targets[kept]] = kept
            values.append(best)
            edges.append(taken)
        return Walks(around, np.array(values), np.array(edges, dtype=np.int64).reshape(len(edges), len(around.nodes)))


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """For each number of layers and each node, the value of the best walk to the node, and its last edge."""

    around: Surroundings
    values: Floats
    edges: Places

    def to(self, place: int) -> list[int]:
        """Return the edge indexes of the best walk from a topic to a node.

        Prefer the shortest of equally good walks.
        """
        length = int(np.argmax(self.values[:, place]))
        found = []
        for layer in range(length - 1, -1, -1):
            found.append(int(self.edges[layer, place]))
            place = int(self.around.sources[found[-1]])
        return found[::-1]


def masked_question(question: str, topics: Sequence[Topic], kinds: Sequence[str]) -> str:
    """Return a question as the network reads it: `who directed § film §`."""
    instead = [f" {FOCUS} {kind} {FOCUS} " for kind in kinds]
    names = [(topic.text, word) for topic, word in zip(topics, instead, strict=True)]
    return " ".join(mask_topics(question, names).split())


class GraphNetwork:
    """Trained weights, opened at first use. `folder` contains encoder.onnx, heads.npz and card.json."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.card: dict[str, Any] = json.loads((folder / CARD).read_text("utf-8"))
            self.version = str(self.card["digest"])[:12]
            self.layers = int(self.card["layers"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{folder} contains no graph network: train one with `clew train qa_gnn`") from error

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return a vector for each text of a relation or type."""
        rows = [self._states(text).mean(0) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(-1, DIMENSION)

    def hear(self, question: str, around: Surroundings, hops: Floats, types: Floats) -> Heard:
        """Run the network on a question with masked topics.

        `hops` and `types` are vectors for the indexes in `around`.
        """
        heads, states = self._heads, self._states(question)
        mean = states.mean(0)
        here = np.zeros((len(around.nodes), len(heads["start"])), dtype=np.float32)
        here[: around.topics] = heads["start"]
        kept, opened = [here], []
        for layer in range(self.layers):
            looked = heads["look"][layer] @ mean + heads["look_bias"][layer]
            gates = np.maximum(self._beside(_attended(states, looked), hops, "gate"), 0)
            count = around.reached[layer]
            passed = here[around.sources[:count]] * gates[around.hops[:count]]
            sums = np.log1p(_sums(passed, around.targets[:count], len(here)))
            here = _even(np.maximum(here @ heads["own"][layer].T + sums @ heads["other"][layer].T, 0))
            kept.append(here)
            opened.append(gates.mean(1) / max(float(gates.mean(1).max(initial=0)), 1e-6))
        wanted = self._beside(_attended(states, heads["end_look"] @ mean), types, "end")
        last = np.maximum(np.concatenate(kept, axis=1) @ heads["join"].T, 0)
        found = np.asarray((last * wanted[around.types]).sum(1), dtype=np.float32)
        found[: around.topics] = -np.inf
        if np.isfinite(found).any():
            found -= np.logaddexp.reduce(found)
        return Heard(round_network(found), round_scores(np.array(opened)))

    def _beside(self, asked: Floats, others: Floats, name: str) -> Floats:
        """Compare a question vector with the vector of each text, through two layers."""
        heads = self._heads
        left, right = _unit(heads["question"] @ asked), _unit(others @ heads["label"].T)
        both = np.concatenate((left * right, np.broadcast_to(left, right.shape), right), axis=1)
        inner = np.maximum(both @ heads[f"{name}_in"].T + heads[f"{name}_in_bias"], 0)
        return np.asarray(inner @ heads[f"{name}_out"].T + heads[f"{name}_out_bias"], dtype=np.float32)

    def _states(self, text: str) -> Floats:
        ids = cut(self._tokenizer.encode(text).ids, LONGEST)
        fed = {"vectors": self._words.vectors(ids)[None], "types": np.zeros((1, len(ids)), np.int64)}
        found: Floats = self._session.run(None, fed)[0][0]
        return found

    @cached_property
    def _heads(self) -> dict[str, Floats]:
        return {name: one.astype(np.float32) for name, one in read_arrays(self.folder / HEADS).items()}

    @cached_property
    def _words(self) -> SharedWords:
        return SharedWords(self.card["words"])

    @cached_property
    def _tokenizer(self) -> Any:
        return embedders_tokenizer()

    @cached_property
    def _session(self) -> Any:
        content = (self.folder / ENCODER).read_bytes() + (self.folder / HEADS).read_bytes()
        if hashlib.sha256(content).hexdigest() != self.card["digest"]:
            raise ModelError(f"the files in {self.folder} do not match card.json: train or install them again")
        return open_session(self.folder / ENCODER)


def _attended(states: Floats, looked: Floats) -> Floats:
    weights = states @ looked / np.sqrt(np.float32(states.shape[1]))
    weights = np.exp(weights - weights.max())
    return np.asarray(weights @ states / weights.sum(), dtype=np.float32)


def _sums(rows: Floats, targets: Places, count: int) -> Floats:
    """Return the sum of the rows of each target."""
    sums = np.zeros((count, rows.shape[1]), dtype=np.float32)
    if len(rows):
        order = np.argsort(targets, kind="stable")
        starts = np.flatnonzero(np.diff(targets[order], prepend=-1))
        sums[targets[order][starts]] = np.add.reduceat(rows[order], starts)
    return sums


def _even(rows: Floats) -> Floats:
    """Scale rows to the same mean size. Zero rows stay zero."""
    return np.asarray(rows / np.sqrt(np.square(rows).mean(1, keepdims=True) + 1e-6), dtype=np.float32)


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Told:
    """Network output for the nodes around the topics of a question."""

    around: Surroundings
    hops: list[Hop]
    """The hops that `around.hops` indexes."""
    heard: Heard

    @cached_property
    def chances(self) -> Floats:
        """Probability of each node in `around.nodes` being the answer."""
        return np.exp(self.heard.scores)


class GraphReader:
    """The network over one base. Encodes the words for relations and types when a question first needs them."""

    def __init__(self, kb: KnowledgeBase, weights: Path = SHIPPED_GRAPH) -> None:
        self.kb, self.network = kb, GraphNetwork(weights)
        self.vocabulary = Vocabulary(kb.schema)
        self._places, self._nameless = HopPlaces(self.vocabulary), nameless_of(kb)
        self._read: dict[str, Floats] = {}

    def read(self, question: str, topics: Sequence[Topic]) -> Told:
        """Run the network on a question about some topics. Nodes without a proper name are not answers."""
        vocabulary, schema = self.vocabulary, self.kb.schema
        kinds = [vocabulary.type_words(self.kb.refs([int(topic.nodes.array[0])])[0].type) for topic in topics]
        start = NodeSet.of([int(node) for topic in topics for node in topic.nodes])
        hops, types, around = surroundings(self.kb, self._places, start, self.network.layers).among_used()
        heard = self.network.hear(
            masked_question(question, topics, kinds),
            around,
            self._vectors([vocabulary.hop_texts[place] for place in hops]),
            self._vectors([vocabulary.type_text(schema.type_names[place]) for place in types]),
        )
        hidden = self._nameless.among(NodeSet.of(around.nodes))
        scores = np.where(np.isin(around.nodes, hidden.array), -np.inf, heard.scores).astype(np.float32)
        return Told(around, [vocabulary.hops[place] for place in hops], replace(heard, scores=scores))

    def _vectors(self, texts: Sequence[str]) -> Floats:
        new = [text for text in dict.fromkeys(texts) if text not in self._read]
        self._read.update(zip(new, self.network.vectors(new), strict=True))
        return np.array([self._read[text] for text in texts], dtype=np.float32).reshape(-1, DIMENSION)
