"""Knowledge bases: their graph, sources, indexes, remote stores, permissions and upkeep."""
