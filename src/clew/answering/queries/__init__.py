"""Queries over a knowledge base: posed, solved exactly, relaxed, witnessed, and written as SPARQL, Cypher and SQL."""
