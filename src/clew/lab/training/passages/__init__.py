"""Train the small network that reads passages with a question."""
