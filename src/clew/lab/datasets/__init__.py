"""Loaders of official data-set files."""
