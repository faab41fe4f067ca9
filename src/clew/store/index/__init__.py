"""Names, BM25, vectors and their fusion over the nodes of a knowledge base."""
