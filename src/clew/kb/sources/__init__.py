"""Import: files, databases and Python objects → tables, one file per format; deltas; and export."""

from clew.kb.sources.databases import is_url
from clew.kb.sources.delta import Delta, apply_delta, read_delta
from clew.kb.sources.files import SourceOptions, parse_columns
from clew.kb.sources.objects import from_networkx, from_tables, to_arrow, to_networkx, write_graphml
from clew.kb.sources.pyg import from_pyg, to_pyg
from clew.kb.sources.read import from_database, read_sources

__all__ = [
    "Delta",
    "SourceOptions",
    "apply_delta",
    "from_database",
    "from_networkx",
    "from_pyg",
    "from_tables",
    "is_url",
    "parse_columns",
    "read_delta",
    "read_sources",
    "to_arrow",
    "to_networkx",
    "to_pyg",
    "write_graphml",
]
