"""drawstring.config."""
