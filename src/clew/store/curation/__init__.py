"""Looking after a base: what is doubtful about its data, and what is in it twice."""
