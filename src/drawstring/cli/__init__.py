"""drawstring.cli."""
