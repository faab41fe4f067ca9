"""Rerank candidate answers by their connections to the question."""
