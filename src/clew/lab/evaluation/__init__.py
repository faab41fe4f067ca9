"""Metrics, runs, reports and comparisons."""
