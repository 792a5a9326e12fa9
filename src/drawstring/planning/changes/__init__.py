"""What changed between two points of a table's history, row by row."""
