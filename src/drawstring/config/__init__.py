"""Options and table properties, parsed once into typed values; which tables can be read, as data."""
