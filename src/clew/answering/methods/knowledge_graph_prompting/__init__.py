"""Knowledge Graph Prompting: a graph of passages, walked from the best ones, read and cited."""
