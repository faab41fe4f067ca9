"""Explore a base without asking a question: mentions, neighbours, subgraphs, documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

from clew.answering.methods.agent.tools import found_nodes
from clew.answering.methods.subgraph_reranking.drawing import draw_subgraph, subgraph_json
from clew.answering.methods.subgraph_reranking.graph_to_text import GraphWriter, WrittenGraph, linearize
from clew.answering.methods.subgraph_reranking.subgraph import Subgraph, SubgraphExtractor
from clew.answering.reading.documents.search import contents
from clew.core.errors import InputError
from clew.core.texts import asked_text
from clew.core.types import Box, Direction, NodeSet, printed_boxes
from clew.store.graph.paths import PathLimits
from clew.store.graph.protocol import KnowledgeBase
from clew.store.open_base import OpenBase

MOST_NODES = 500
"""Maximum number of nodes of a subgraph. A drawing of more is hard to read."""
LIMITS = PathLimits(most_hops=4, most_paths=50)


@dataclass(frozen=True)
class ShownSubgraph:
    """A subgraph that prints as text and displays as a drawing in a notebook."""

    kb: KnowledgeBase
    subgraph: Subgraph
    written: WrittenGraph | None = None
    """Description of the subgraph by a model. None if no description was requested."""

    @cached_property
    def svg(self) -> str:
        """Drawing of the subgraph as SVG."""
        return draw_subgraph(self.kb, self.subgraph)

    def to_dict(self) -> dict[str, Any]:
        """Return nodes, edges, paths and text as plain values, with the model's description and its check."""
        shown = subgraph_json(self.kb, self.subgraph)
        if self.written is None:
            return shown
        check = None if self.written.check is None else asdict(self.written.check)
        return {**shown, "written": {"text": self.written.text, "problem": self.written.problem, "check": check}}

    def __str__(self) -> str:
        return linearize(self.kb, self.subgraph)

    def _repr_html_(self) -> str:
        return self.svg


def mentions(tools: OpenBase, text: str) -> list[dict[str, Any]]:
    """Find the names in a text, with the nodes that each name may refer to."""
    return [
        {"start": one.start, "end": one.end, "text": one.text, "nodes": [*map(asdict, found_nodes(tools, one.links))]}
        for one in tools.names.mentions(asked_text(text, "text"))
    ]


def neighbours(
    tools: OpenBase, key: str, relation: str | None = None, direction: Direction = "any", k: int = 20
) -> dict[str, Any]:
    """Return a node, its first `k` edges and their end nodes. Alternate between the relations."""
    kb = tools.kb
    center = tools.find_node(key)
    if relation is not None:
        kb.schema.relation_rows(relation)
    edges = kb.edges(NodeSet.of([center]), relation, direction)
    names = kb.schema.relation_names
    groups: dict[tuple[int, bool], list[tuple[int, int, int]]] = {}
    for head, code, tail in zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True):
        groups.setdefault((code, head == center), []).append((head, code, tail))
    chosen = [edge for row in zip_longest(*groups.values()) for edge in row if edge is not None][:k]
    nodes = list(dict.fromkeys([center, *(node for head, _, tail in chosen for node in (head, tail))]))
    refs = {ref.id: ref for ref in kb.refs(nodes)}
    return {
        "nodes": [refs[node].to_dict() for node in nodes],
        "edges": [{"head": refs[h].key, "relation": names[code], "tail": refs[t].key} for h, code, t in chosen],
        "counts": [
            {"relation": names[code], "direction": "out" if out else "in", "count": len(group)}
            for (code, out), group in groups.items()
        ],
        "left_out": sum(map(len, groups.values())) - len(chosen),
    }


def between(tools: OpenBase, entities: Sequence[str], hops: int = 4, *, write: bool = False) -> ShownSubgraph:
    """Extract all shortest paths from each entity to the last entity. With `write`, a model describes the subgraph."""
    found = [tools.find_node(text) for text in entities]
    if len(set(found)) < 2:
        raise InputError("name at least two different entities")
    limits = PathLimits(most_hops=hops, most_paths=LIMITS.most_paths)
    [subgraph] = SubgraphExtractor(tools.kb, limits).extract(found[:-1], [found[-1]])
    if len(subgraph.nodes) > MOST_NODES:
        raise InputError(f"the subgraph has {len(subgraph.nodes)} nodes, more than {MOST_NODES}: lower `hops`")
    written = (
        GraphWriter(tools.required_model("describing a subgraph"), tools.kb).write([subgraph])[0] if write else None
    )
    return ShownSubgraph(tools.kb, subgraph, written)


def documents(tools: OpenBase) -> dict[str, str]:
    """Return the keys of the base's documents with their titles."""
    if "document" not in tools.kb.schema.type_names:
        return {}
    return {ref.key: ref.name for ref in tools.kb.refs(tools.kb.nodes("document").array.tolist())}


def document(tools: OpenBase, name: str) -> dict[str, Any]:
    """Return a document's passages and tables in reading order, with their pages."""
    kb = tools.kb
    node = kb.find(name)
    title = kb.node(node)
    if title.type != "document":
        raise InputError(f"{name!r} is a {title.type}, not a document")
    pieces = [kb.node(piece) for piece in contents(kb, node)]
    pieces.sort(key=lambda piece: (piece.attributes.get("start") or 0, piece.key))
    return {
        "name": name,
        "title": title.name,
        "pieces": [
            {
                "key": piece.key,
                "type": piece.type,
                "name": piece.name,
                "text": piece.text,
                "page": piece.attributes.get("page"),
            }
            for piece in pieces
        ],
    }


@dataclass(frozen=True, slots=True)
class PrintedPage:
    """A page of a PDF with the boxes to highlight."""

    file: Path
    page: int
    boxes: tuple[Box, ...]


def printed_page(
    tools: OpenBase, key: str, files: Path | None = None, boxes: Iterable[Box] | None = None
) -> PrintedPage:
    """Return the file, the page and the boxes of the lines of a passage, table or page.

    Search for the file in `files`. Without `files`, search where this user built the base, and the current folder. If
    `boxes` is given, it replaces the boxes of the lines.
    """
    from clew.documents.originals import find_original

    node = tools.kb.node(tools.find_node(key))
    name, page = node.attributes.get("file"), node.attributes.get("page")
    if not isinstance(name, str) or not isinstance(page, int):
        raise InputError(f"{node.key} is a {node.type} without a page: give the key of a passage, table or page")
    if not name.lower().endswith(".pdf"):
        raise InputError(f"{name} is not a PDF: only pages of a PDF can be shown as printed")
    digest = tools.kb.node(tools.kb.find(name)).attributes.get("digest")
    found = find_original(
        tools.local.folder if files is None else files, name, digest if isinstance(digest, str) else None, files
    )
    own = printed_boxes(str(node.attributes.get("lines") or ""), 0, len(node.text)) if boxes is None else tuple(boxes)
    return PrintedPage(found, page, own)
