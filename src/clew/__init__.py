"""Clew answers questions over a knowledge base and hands over the thread: facts, paths and passages.

    import clew

    clew.build(["nodes.jsonl", "edges.tsv"], "medicine.kb")
    base = clew.open("medicine.kb")
    print(base.ask("Which genes cause Marfan syndrome?"))

`clew.methods` holds the methods with their options, `clew.errors` what can go wrong.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from clew.core.version import __version__

if TYPE_CHECKING:
    from clew.answering import methods
    from clew.api import Base, build, evaluate, open
    from clew.core import errors
    from clew.core.trace import Unchecked
    from clew.core.types import Answer, Candidate, Evidence, Fact, Fallback, Judgement, NodeRef, Passage, Path
    from clew.documents.rows import DocumentOptions
    from clew.models.budget import Budget
    from clew.models.protocol import Embedder, LanguageModel
    from clew.server.client import Client
    from clew.store.sources.files import SourceOptions
    from clew.store.sources.objects import from_networkx, from_pyg, from_tables, to_arrow, to_networkx, to_pyg
    from clew.store.sources.read import from_database

__all__ = [
    "Answer",
    "Base",
    "Budget",
    "Candidate",
    "Client",
    "DocumentOptions",
    "Embedder",
    "Evidence",
    "Fact",
    "Fallback",
    "Judgement",
    "LanguageModel",
    "NodeRef",
    "Passage",
    "Path",
    "SourceOptions",
    "Unchecked",
    "__version__",
    "build",
    "errors",
    "evaluate",
    "from_database",
    "from_networkx",
    "from_pyg",
    "from_tables",
    "methods",
    "open",
    "to_arrow",
    "to_networkx",
    "to_pyg",
]
_WHERE = {
    **dict.fromkeys(("Base", "build", "evaluate", "open"), "clew.api"),
    **dict.fromkeys(
        ("Answer", "Candidate", "Evidence", "Fact", "Fallback", "Judgement", "NodeRef", "Passage", "Path"),
        "clew.core.types",
    ),
    **dict.fromkeys(
        ("from_networkx", "from_pyg", "from_tables", "to_arrow", "to_networkx", "to_pyg"), "clew.store.sources.objects"
    ),
    **dict.fromkeys(("Embedder", "LanguageModel"), "clew.models.protocol"),
    "Budget": "clew.models.budget",
    "Client": "clew.server.client",
    "DocumentOptions": "clew.documents.rows",
    "SourceOptions": "clew.store.sources.files",
    "Unchecked": "clew.core.trace",
    "from_database": "clew.store.sources.read",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: `import clew` alone costs nothing."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name in ("errors", "methods"):
        return import_module("clew.core.errors" if name == "errors" else "clew.answering.methods")
    raise AttributeError(f"module 'clew' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
