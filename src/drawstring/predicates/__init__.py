"""drawstring.predicates."""
