"""drawstring.spark."""
