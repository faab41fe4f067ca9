"""The five roles of a language model, each with an implementation that needs no model."""
