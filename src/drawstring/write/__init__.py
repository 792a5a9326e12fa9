"""Writing tables: keys, index, file groups, files, transactions, locks, rollback, services. Knows Arrow, not Spark."""
