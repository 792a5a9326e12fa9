"""Build hook: put the bridge jars that `make wheel` compiled into the wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class JarHook(BuildHookInterface):
    """Includes build/jars/*.jar; without them the wheel works too, and compiles at the first session."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the jars, except to editable installs, which compile from the checkout."""
        if version == "editable":
            return
        for jar in sorted(Path(self.root, "build", "jars").glob("*.jar")):
            build_data["force_include"][str(jar)] = f"drawstring/_jars/{jar.name}"
