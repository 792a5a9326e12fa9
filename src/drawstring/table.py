"""Tables: the public entry for reading without Spark."""
