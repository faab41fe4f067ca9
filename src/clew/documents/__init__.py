"""Files to passages, pages and tables to a knowledge base."""
