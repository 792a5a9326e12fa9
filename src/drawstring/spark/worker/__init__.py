"""The Python process beside an executor."""
