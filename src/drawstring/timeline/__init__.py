"""drawstring.timeline."""
