"""Files to a knowledge base of passages and tables: `read_folder` for files, `corpus_tables` for titled texts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.documents.building import build_documents, hold_documents
    from clew.documents.corpus import corpus_tables
    from clew.documents.folder import ReadFolder, Skipped, read_folder
    from clew.documents.graph.build import EdgeOptions
    from clew.documents.rows import DocumentOptions

__all__ = [
    "DocumentOptions",
    "EdgeOptions",
    "ReadFolder",
    "Skipped",
    "build_documents",
    "corpus_tables",
    "hold_documents",
    "read_folder",
]
_WHERE = {
    **dict.fromkeys(("build_documents", "hold_documents"), "building"),
    **dict.fromkeys(("ReadFolder", "Skipped", "read_folder"), "folder"),
    "DocumentOptions": "rows",
    "EdgeOptions": "graph.build",
    "corpus_tables": "corpus",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: a process that only reads files imports none of it."""
    if name in _WHERE:
        return getattr(import_module(f"clew.documents.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'clew.documents' has no attribute {name!r}")
