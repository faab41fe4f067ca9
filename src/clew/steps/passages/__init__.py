"""Passages of documents: searching, walking their graph, structure, tables and citations."""
