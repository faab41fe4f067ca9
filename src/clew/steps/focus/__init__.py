"""From a triplet query to answers: grounding, substitution, relaxation, witnesses, formal queries."""
