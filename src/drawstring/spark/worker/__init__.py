"""The Python process that runs beside an executor and reads slices that Spark cannot read by itself."""
