"""STaRK's retrievers over node documents, and its reranker."""
