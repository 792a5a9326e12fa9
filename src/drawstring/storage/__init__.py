"""drawstring.storage."""
