"""Embedders: bundled, from local folders, from OpenAI-compatible endpoints, and a fake for tests."""
