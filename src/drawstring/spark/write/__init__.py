"""Writes from Spark: what a statement means in Hudi's terms, and the Spark jobs that run it."""
