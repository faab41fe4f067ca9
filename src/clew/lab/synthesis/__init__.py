"""Generate a benchmark from any knowledge base."""
