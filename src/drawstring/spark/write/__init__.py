"""Writes from Spark: what a statement means, and the jobs that run it."""
