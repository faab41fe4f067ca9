"""The query language: values, text form, executor, and printers for SQL, SPARQL, Cypher and plain words."""
