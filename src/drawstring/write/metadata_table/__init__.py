"""Writing the metadata table in step with the data table: its records, its files, its own services."""
