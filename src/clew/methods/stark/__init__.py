"""STaRK's retrievers over node documents."""
