"""Users of a server: passwords, roles, sessions, tokens, questions and audit log."""
