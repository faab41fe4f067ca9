"""Training of retrievers, rankers and parsers."""
