"""The five roles that a language model plays, each with a model and without one."""
