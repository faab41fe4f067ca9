"""Trains the small network that reads passages beside a question."""
