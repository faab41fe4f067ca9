"""Language models and embedders: protocols, prompts, wrappers and adapters."""
