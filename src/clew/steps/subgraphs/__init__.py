"""Subgraphs between entities: paths, features, words and pictures, and rankers over them."""
