"""The values everything speaks in: types, queries, errors, traces, and their one JSON form."""
