"""Values shared by all packages: types, queries, errors and traces."""
