"""drawstring.schema."""
