"""Questions into answers: reading, queries, the roles of a language model, methods and conversations."""
