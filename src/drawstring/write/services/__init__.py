"""Table services: cleaning, archival and compaction, planned as values before anything is changed."""
