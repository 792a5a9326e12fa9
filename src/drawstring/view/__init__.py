"""The file slices of a table at an instant, found by listing or in the metadata table, and their statistics."""
