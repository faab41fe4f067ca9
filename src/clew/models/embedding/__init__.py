"""Embedders: the one that ships in the package, local folders, OpenAI-compatible endpoints, and a fake for tests."""
