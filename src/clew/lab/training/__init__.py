"""What is learned: retrievers, rankers, parsers."""
