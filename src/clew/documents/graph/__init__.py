"""Edges between passages: shared keywords, shared names, mentioned titles, similar vectors. Memory use is linear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from clew.core.errors import InputError
from clew.core.types import IntArray
from clew.documents.graph.edges import EdgeOptions, PassageEdges, nearest_edges
from clew.documents.graph.entity import entity_edges, mention_edges
from clew.documents.graph.tfidf import tfidf_edges
from clew.models.embedding.onnx import asking_on
from clew.models.protocol import Embedder


def passage_graph(
    names: Sequence[str],
    texts: Sequence[str],
    documents: IntArray,
    *,
    titles: Sequence[tuple[str, int]],
    owners: Sequence[Sequence[int]],
    options: EdgeOptions,
    embedder: Embedder | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[PassageEdges]:
    """Build the edges of each kind. Mentions connect a passage to targets by title, except to its own targets."""
    built = []
    whole = [f"{name}. {text}" for name, text in zip(names, texts, strict=True)]
    for kind in dict.fromkeys(options.kinds):
        say(f"{kind} edges")
        if kind == "tfidf":
            built.append(tfidf_edges(pa.array(texts, pa.large_string()), documents, options))
        elif kind == "entity":
            built.append(entity_edges(_titled_once(names, texts, documents), documents.tolist(), options))
        elif kind == "mentions":
            built.append(mention_edges(texts, owners, titles))
        else:
            if embedder is None:
                raise InputError(f"{kind} edges need an embedder: add --embedder, or omit them")
            vectors = embedder.embed(whole, role="document")
            asked = [asking_on(name, text) for name, text in zip(names, texts, strict=True)] if kind == "mdr" else []
            asking = embedder.embed(asked, role="query") if asked else None
            built.append(nearest_edges(np.asarray(vectors), kind, options.nearest, asking))
    return built


def _titled_once(names: Sequence[str], texts: Sequence[str], documents: IntArray) -> list[str]:
    """Prepend the title to the first passage of each document only. Otherwise it would connect all passages."""
    first = np.append(True, documents[1:] != documents[:-1])
    return [f"{name}. {text}" if titled else text for name, text, titled in zip(names, texts, first, strict=True)]
