"""Data sets, evaluation, benchmarks generated from a base, and training."""
