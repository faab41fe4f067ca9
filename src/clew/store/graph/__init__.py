"""Knowledge base protocol and schema, arrays on disk, import, rendering and paths."""
