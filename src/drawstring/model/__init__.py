"""The vocabulary of a Hudi table as frozen values: no I/O, no Arrow."""
