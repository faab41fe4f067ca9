"""Reading a question as a triplet query without a language model."""
