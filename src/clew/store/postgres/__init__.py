"""A knowledge base in PostgreSQL: for several servers on one base, and for bases that outgrow one machine.

    connection.py      addresses, connections, arrays as PostgreSQL sends them
    catalog.py         which bases and generations there are; migrations; locks
    *.sql              the tables
    loading.py, unloading.py    a built base into the database, by COPY, and back
    knowledge_base.py  the graph
    names.py, vectors.py    the indexes

A base is built as always, into arrays in a temporary folder, and these are loaded into tables of a new schema: one
generation. Naming it in the catalog is the commit. Readers hold the generation they have open, so that every answer
comes from one state of the base, and a writer removes what nobody holds. What is small is read once a process and
generation: the schema, type and degree of every node. Everything else stays in the database.
"""

SCHEMES = ("postgresql://", "postgres://")


def is_address(text: object) -> bool:
    """Whether something names a base in PostgreSQL: `postgresql://USER@HOST/DATABASE#BASE`."""
    return isinstance(text, str) and text.startswith(SCHEMES)
