"""drawstring.write."""
