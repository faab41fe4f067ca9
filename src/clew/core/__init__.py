"""Shared value types, queries, errors and traces, with the JSON form of each."""
