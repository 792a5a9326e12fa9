"""Open and plan a table in a fresh process; prints tasks, cold seconds, warm seconds, megabytes at the peak."""

from __future__ import annotations

import resource
import sys
import time


def main(path: str) -> None:
    started = time.perf_counter()
    import drawstring

    tasks = len(drawstring.open_table(path).snapshot().scan().plan().tasks)
    cold = time.perf_counter() - started
    started = time.perf_counter()
    drawstring.open_table(path).snapshot().scan().where("p = '7'").plan()
    warm = time.perf_counter() - started
    print(tasks, f"{cold:.3f}", f"{warm:.3f}", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


if __name__ == "__main__":
    main(sys.argv[1])
