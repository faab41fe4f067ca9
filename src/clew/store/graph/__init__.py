"""The knowledge base: protocol and schema, arrays on disk, import, rendering, paths, SPARQL endpoints."""
