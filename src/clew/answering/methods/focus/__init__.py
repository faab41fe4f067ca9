"""4StepFocus and its successors: triplets filter the candidates, documents rank them."""
