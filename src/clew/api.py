"""The library in two functions: `build` a knowledge base, `open` it and ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clew.building import BuildReport
from clew.building import build as build_base
from clew.core.errors import InputError
from clew.core.types import Answer
from clew.documents import build_documents, hold_documents
from clew.kb.arrays import ArrayKnowledgeBase
from clew.kb.paths import PathLimits
from clew.kb.protocol import KnowledgeBase
from clew.kb.schema_file import schema_edits
from clew.kb.sources import SourceOptions, read_sources
from clew.kb.tables import Tables
from clew.methods import catalog
from clew.methods.subgraph_reranking.drawing import draw_subgraph
from clew.methods.subgraph_reranking.graph_to_text import linearize
from clew.methods.subgraph_reranking.subgraph import Subgraph, SubgraphExtractor
from clew.toolbox import Toolbox


@dataclass(frozen=True)
class Base:
    """An open knowledge base that answers questions."""

    tools: Toolbox

    @property
    def kb(self) -> ArrayKnowledgeBase:
        """The graph and its texts."""
        return self.tools.local

    def ask(self, question: str, method: str = catalog.DEFAULT_METHOD, **options: object) -> Answer:
        """Answer a question; `clew methods` lists the methods and their options."""
        built = catalog.create(method, self.tools, {name: str(value) for name, value in options.items()})
        return catalog.ask(built, question)

    def subgraph(self, *entities: str, hops: int = 4) -> ShownSubgraph:
        """What lies between entities, named by key or name: all shortest paths from each to the last one."""
        if len(entities) < 2:
            raise InputError("name at least two entities")
        *asked, candidate = (self.tools.find_node(text) for text in entities)
        [found] = SubgraphExtractor(self.kb, PathLimits(most_hops=hops)).extract(asked, [candidate])
        return ShownSubgraph(self.kb, found)


@dataclass(frozen=True)
class ShownSubgraph:
    """A subgraph that shows itself: as text when printed, as a drawing in a notebook."""

    kb: KnowledgeBase
    subgraph: Subgraph

    @property
    def svg(self) -> str:
        """The drawing."""
        return draw_subgraph(self.kb, self.subgraph)

    def __str__(self) -> str:
        return linearize(self.kb, self.subgraph)

    def _repr_html_(self) -> str:
        return self.svg


def open(folder: str | Path) -> Base:
    """Open a knowledge base in milliseconds."""
    return Base(Toolbox.open(folder))


def build(
    sources: Tables | Sequence[str | Path],
    folder: str | Path,
    *,
    options: SourceOptions | None = None,
    schema: str | Path | None = None,
    skip_bad: bool = False,
) -> BuildReport:
    """Build a knowledge base from files, or from tables made of Python objects."""
    paths = [] if isinstance(sources, Tables) else [Path(source) for source in sources]
    if paths and options is None and hold_documents(paths):
        return build_documents(paths, Path(folder))
    tables = sources if isinstance(sources, Tables) else read_sources(paths, options)
    edits = schema_edits(None if schema is None else Path(schema), paths)
    return build_base(tables, Path(folder), edits=edits, skip_bad=skip_bad)
