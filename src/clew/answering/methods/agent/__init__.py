"""A language model that explores a base with tools."""
