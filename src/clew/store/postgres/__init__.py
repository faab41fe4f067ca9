"""Knowledge bases in PostgreSQL, for several servers on one base and for very large bases.

    connection.py      addresses, connections, conversion of arrays
    catalog.py         bases and generations, migrations, locks
    *.sql              the tables
    loading.py         copies a built base into the database
    knowledge_base.py  the graph
    names.py, vectors.py    the indexes

A base is built as arrays in a temporary folder, which are loaded into tables of a new schema: one generation. An entry
in the catalog is the commit. Readers lock the generation they have open, so that every answer comes from one state of
the base, and a writer removes unlocked generations. Each process reads small data once per generation: the schema, and
type and degree of every node. Everything else stays in the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from clew.store.graph.protocol import KnowledgeBase
    from clew.store.postgres.knowledge_base import PostgresKnowledgeBase


def is_sql(kb: KnowledgeBase) -> TypeGuard[PostgresKnowledgeBase]:
    """Return whether a base is in PostgreSQL, without importing the client."""
    return kb.query_language == "sql"
