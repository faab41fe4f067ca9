"""Import: files and Python objects → tables, one file per format."""

from clew.kb.sources.options import SourceOptions, parse_columns
from clew.kb.sources.read import read_sources

__all__ = ["SourceOptions", "parse_columns", "read_sources"]
