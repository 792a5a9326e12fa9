"""Sessions with drawstring in them, and the compiled bridge that they need."""
