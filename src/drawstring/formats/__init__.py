"""Bytes to values and back: log blocks, Avro, HFiles, Parquet footers. Knows files, not tables."""
