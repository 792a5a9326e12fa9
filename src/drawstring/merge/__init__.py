"""Merging a file slice: log records folded by key, then merged with the rows of the base file."""
