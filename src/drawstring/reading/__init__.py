"""drawstring.reading."""
