"""From the words of a question to what it asks for."""
