"""drawstring.formats."""
