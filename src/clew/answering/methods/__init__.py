"""The methods with their options: `clew.methods.TournamentOnPath(system=1, width=3)`.

A method is a frozen dataclass. Its fields are its options. `clew methods` lists them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.answering.methods.agent.method import Agent
    from clew.answering.methods.auto import Auto
    from clew.answering.methods.focus.focus_plus import FocusPlus
    from clew.answering.methods.focus.four_step_focus import FourStepFocus
    from clew.answering.methods.knowledge_graph_prompting.baselines import (
        DensePassages,
        IterativePassages,
        KnnPassages,
        NoPassages,
        TfIdf,
        TwoHopDense,
    )
    from clew.answering.methods.knowledge_graph_prompting.method import KnowledgeGraphPrompting
    from clew.answering.methods.paths.aligned_paths import AlignedPaths
    from clew.answering.methods.paths.qa_gnn import QaGnn
    from clew.answering.methods.paths.think_on_graph import ThinkOnGraph
    from clew.answering.methods.paths.tournament_on_path import TournamentOnPath
    from clew.answering.methods.protocol import Method
    from clew.answering.methods.query import QueryMethod
    from clew.answering.methods.retrievers import Bm25, Hybrid, LlmReranker, MultiVectorSearch, VectorSearch
    from clew.answering.methods.subgraph_reranking.method import SubgraphReranking

__all__ = [
    "Agent",
    "AlignedPaths",
    "Auto",
    "Bm25",
    "DensePassages",
    "FocusPlus",
    "FourStepFocus",
    "Hybrid",
    "IterativePassages",
    "KnnPassages",
    "KnowledgeGraphPrompting",
    "LlmReranker",
    "Method",
    "MultiVectorSearch",
    "NoPassages",
    "QaGnn",
    "QueryMethod",
    "SubgraphReranking",
    "TfIdf",
    "ThinkOnGraph",
    "TournamentOnPath",
    "TwoHopDense",
    "VectorSearch",
]


def __getattr__(name: str) -> Any:
    """Import a class on first access."""
    if name == "Method":
        return import_module("clew.answering.methods.protocol").Method
    if name in __all__:
        catalog = import_module("clew.answering.methods.catalog")
        place = next(place for place in catalog.METHODS.values() if str(place).endswith(f":{name}"))
        return getattr(import_module(f"clew.answering.methods.{place.partition(':')[0]}"), name)
    raise AttributeError(f"module 'clew.answering.methods' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
