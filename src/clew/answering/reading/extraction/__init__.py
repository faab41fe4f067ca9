"""Reading without a model: what a question asks for, the spans that may answer it, and what speaks for each."""
