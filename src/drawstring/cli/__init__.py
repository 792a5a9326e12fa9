"""The command line: `drawstring doctor`, `drawstring inspect PATH`, `drawstring plan PATH`."""

from drawstring.cli.app import main

__all__ = ["main"]
