"""One short file per system."""
