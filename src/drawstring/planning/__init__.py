"""drawstring.planning."""
