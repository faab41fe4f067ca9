"""Build a knowledge base of passages and tables: `folder` reads files, `corpus` reads titled texts."""
