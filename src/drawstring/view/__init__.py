"""drawstring.view."""
