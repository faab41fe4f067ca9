"""Queries carried out by other engines."""

import datetime
from collections import Counter

from clew.core.types import NodeRef


def cell(value):
    """A value as every engine gives it."""
    if isinstance(value, NodeRef):
        return value.key
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, datetime.date):
        return f"{value.isoformat()}T00:00:00"
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return float(f"{value:.9g}") + 0.0
    return tuple(value) if isinstance(value, list) else value


def normal(query, rows):
    """Rows in order if the query has one, or else in any order."""
    rows = [tuple(map(cell, row)) for row in rows]
    if getattr(query, "order", ()) or getattr(query, "first", None) is not None:
        return rows
    return sorted(Counter(rows).items(), key=repr)
