"""Files to a knowledge base of passages and tables: `folder` reads files, `corpus` takes titled texts."""
