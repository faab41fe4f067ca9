"""Import: files, databases and Python objects → tables, one file per format; deltas; and export."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.kb.sources.databases import is_url
    from clew.kb.sources.delta import Delta, apply_delta, read_delta
    from clew.kb.sources.files import SourceOptions, parse_columns
    from clew.kb.sources.objects import (
        from_networkx,
        from_pyg,
        from_tables,
        to_arrow,
        to_networkx,
        to_pyg,
        write_graphml,
    )
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
_WHERE = {
    "databases": ("is_url",),
    "delta": ("Delta", "apply_delta", "read_delta"),
    "files": ("SourceOptions", "parse_columns"),
    "objects": (
        *("from_networkx", "from_pyg", "from_tables"),
        *("to_arrow", "to_networkx", "to_pyg", "write_graphml"),
    ),
    "read": ("from_database", "read_sources"),
}


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is asked for: who only asks questions reads no files."""
    for module, names in _WHERE.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
