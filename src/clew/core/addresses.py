"""Addresses of bases outside folders: in PostgreSQL, in a graph database, or behind a SPARQL endpoint."""

from __future__ import annotations

POSTGRES = ("postgresql://", "postgres://")
BOLT = tuple(f"{kind}{safety}://" for kind in ("bolt", "neo4j") for safety in ("", "+s", "+ssc"))
SPARQL = "sparql+"
"""Prefix of the URL of an endpoint."""


def is_postgres(text: object) -> bool:
    """Return whether a text is an address in PostgreSQL: `postgresql://USER@HOST/DATABASE#BASE`."""
    return isinstance(text, str) and text.startswith(POSTGRES)


def is_bolt(text: object) -> bool:
    """Return whether a text is an address of a graph database: `bolt://HOST:7687/DATABASE` or `neo4j://…`."""
    return isinstance(text, str) and text.startswith(BOLT)


def is_remote(place: object) -> bool:
    """Return whether a value is the address of a remote graph."""
    return is_bolt(place) or (isinstance(place, str) and place.startswith(SPARQL))
