"""Import of files, databases and Python objects into tables, with one module per format, updates and export."""
