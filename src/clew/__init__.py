"""Clew answers questions over a knowledge base and hands over the thread: facts, paths and passages."""

__version__ = "0.1.0"
