"""Clew answers questions over a knowledge base and hands over the thread: the facts, paths and passages behind each answer."""

__version__ = "0.1.0"
