"""A benchmark from any knowledge base."""
