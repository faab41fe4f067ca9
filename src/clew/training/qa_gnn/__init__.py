"""Trains the network that passes messages through a graph as a question asks."""
