"""Import: files, databases and Python objects → tables, one file per format; deltas; and export."""
