"""The commands of `drawstring`: doctor, inspect, plan, rollback, metadata, clean, archive, compact."""

from drawstring.cli.app import main

__all__ = ["main"]
