"""Relation paths: which path of relations a question asks for, and the tournaments that choose it."""
