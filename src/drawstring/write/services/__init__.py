"""What keeps a table in order: cleaning and archival, planned as values before anything is touched."""
