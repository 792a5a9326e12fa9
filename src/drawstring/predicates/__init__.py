"""Conditions on rows: built, parsed, evaluated on facts about rows, executed by Arrow."""
