"""4StepFocus and its successors: triplets focus the search, documents rank."""
