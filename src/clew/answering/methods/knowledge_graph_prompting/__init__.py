"""Knowledge Graph Prompting: walk a graph of passages from the best ones, read them and cite them."""
