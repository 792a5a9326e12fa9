"""Avro and Arrow schemas, projections from file schemas to the table's, column ids, values as text."""
