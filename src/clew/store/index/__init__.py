"""Indexes over the nodes of a knowledge base: names, BM25, vectors and their fusion."""
