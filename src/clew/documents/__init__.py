"""Files to a knowledge base of passages and tables: `read_folder` for files, `corpus_tables` for titled texts."""

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
