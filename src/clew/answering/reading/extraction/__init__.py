"""Extraction without a model: the kind of answer a question asks for, candidate spans, and clues for each span."""
