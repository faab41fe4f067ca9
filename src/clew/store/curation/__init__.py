"""Data quality of a base: doubtful data and duplicates."""
