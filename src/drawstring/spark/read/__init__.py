"""Answers to what the bridge asks about reading."""
