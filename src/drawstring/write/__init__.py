"""Writing tables: new tables, transactions, keys, file groups and base files. Knows Arrow, not Spark."""
