"""Prompts of the construction, one file per step."""
