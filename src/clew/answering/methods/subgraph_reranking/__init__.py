"""Candidate answers, reranked by what connects them with the question."""
