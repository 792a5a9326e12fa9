"""Making golden tables by running Apache Hudi: what `generate.py` is built of."""
