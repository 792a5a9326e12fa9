"""drawstring.merge."""
