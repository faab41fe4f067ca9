"""Users of a server: passwords, roles, sessions, tokens, what they asked, and what was done."""
