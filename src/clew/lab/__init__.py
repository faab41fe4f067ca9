"""Measuring and learning: data sets, evaluation, benchmarks made from a base, training."""
