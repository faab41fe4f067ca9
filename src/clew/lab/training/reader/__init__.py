"""Trains the two encoders with which the learned reader reads questions over any schema."""
