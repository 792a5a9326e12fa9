"""Streaming reads: where a query stands, what its next batch takes, and the scan of a batch."""
