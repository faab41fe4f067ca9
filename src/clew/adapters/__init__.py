"""Clew as a retriever of other libraries; each module needs the extra of its name."""
