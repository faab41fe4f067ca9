"""Graphs that stay in another store and are queried in SPARQL or Cypher."""
