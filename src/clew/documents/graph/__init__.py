"""Edges between passages: shared keywords, shared names, mentioned titles, near vectors; memory linear in passages."""
