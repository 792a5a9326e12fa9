"""Open and plan a table in a fresh process.

Prints tasks, seconds cold and warm, megabytes at the peak; then tasks, seconds cold and warm with a filter on a
column that the metadata table has statistics of.
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path


def peak_megabytes() -> int:
    """The most memory of this process; what `getrusage` tells begins with the parent's, which may be more."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    found = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return (found or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])[0] // 1024


def main(path: str) -> None:
    started = time.perf_counter()
    import drawstring

    tasks = len(drawstring.open_table(path).snapshot().scan().plan().tasks)
    cold = time.perf_counter() - started
    started = time.perf_counter()
    drawstring.open_table(path).snapshot().scan().where("p = '7'").plan()
    warm = time.perf_counter() - started
    memory = peak_megabytes()
    filtered, seconds = [], []
    for condition in ("id BETWEEN 5000 AND 9999", "id >= 0 AND id < 40000"):
        started = time.perf_counter()
        filtered.append(len(drawstring.open_table(path).snapshot().scan().where(condition).plan().tasks))
        seconds.append(f"{time.perf_counter() - started:.3f}")
    print(tasks, f"{cold:.3f}", f"{warm:.3f}", memory, *filtered, *seconds)


if __name__ == "__main__":
    main(sys.argv[1])
