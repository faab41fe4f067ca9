"""Words of questions, names and relations, without a model."""
