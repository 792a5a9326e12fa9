"""Who holds a lock or sends a heartbeat, and the proof that they are gone."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

_INITIAL_NAMESPACE = "pid:[4026531836]"
"""The name space of a machine's own processes, which has this number in every Linux; containers have others."""


@dataclass(frozen=True)
class Owner:
    """A process: where and when it started, so that no other one is ever taken for it.

    `boot` tells the running kernel, and with it the machine, from all others; `pid_namespace` the container;
    `started` the process from a later one of the same number; `token` this use from its others.
    """

    host: str
    pid: int
    started: str
    token: str
    boot: str = ""
    pid_namespace: str = ""
    machine: str = ""
    since_ms: int = 0

    @classmethod
    def me(cls) -> Owner:
        """This process, with a token of its own for each use."""
        return replace(_this_process(os.getpid()), token=uuid.uuid4().hex, since_ms=int(time.time() * 1000))

    def to_bytes(self) -> bytes:
        """Return the owner as the content of a file."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def parse(cls, content: bytes) -> Owner | None:
        """Return the owner a file names; None when the file is not drawstring's."""
        try:
            found = cls(**json.loads(content))
        except (ValueError, TypeError):
            return None
        texts = (found.host, found.started, found.token, found.boot, found.pid_namespace, found.machine)
        numbers = (found.pid, found.since_ms)
        whole = all(isinstance(t, str) for t in texts) and all(isinstance(n, int) for n in numbers)
        return found if whole else None

    @property
    def is_this_process(self) -> bool:
        """Whether it is the process that asks."""
        me = _this_process(os.getpid())
        return replace(me, token=self.token, since_ms=self.since_ms) == self

    @property
    def is_dead(self) -> bool:
        """Whether the process is proven to be gone; where nothing can be proven it may be alive.

        1. In the running kernel and the same pid name space, its number is free, taken by another, or a zombie's.
        2. Its machine has been started again since.

        Of other machines and other containers nothing is known.
        """
        me = _this_process(os.getpid())
        if not self.boot or not self.pid_namespace or not me.boot or not me.pid_namespace:
            return False
        if self.boot == me.boot:
            return self.pid_namespace == me.pid_namespace and not _runs(self.pid, self.started)
        return self._before_reboot_of(me)

    def _before_reboot_of(self, me: Owner) -> bool:
        # Images are cloned with their machine-id, and containers have that of their image: it proves nothing by
        # itself. Only outside of containers, under one host name, and for what was written before this machine was
        # started, is a different boot of the same machine-id a reboot.
        return (
            bool(self.machine)
            and (self.machine, self.host) == (me.machine, me.host)
            and self.pid_namespace == me.pid_namespace == _INITIAL_NAMESPACE
            and 0 < self.since_ms < _booted_ms()
        )

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@lru_cache(maxsize=4)
def _this_process(pid: int) -> Owner:
    # Keyed by the process id: a forked child is another process.
    return Owner(
        host=socket.gethostname(),
        pid=pid,
        started=_stat(pid)[1],
        token="",
        boot=_text("/proc/sys/kernel/random/boot_id"),
        pid_namespace=_namespace(pid),
        machine=_text("/etc/machine-id"),
    )


def _namespace(pid: int) -> str:
    """The pid name space, when /proc shows the processes of that same one."""
    with suppress(OSError):
        if os.readlink("/proc/self") == str(pid):
            return os.readlink("/proc/self/ns/pid")
    return ""


def _runs(pid: int, started: str) -> bool:
    """Whether a process of this name space runs, or may run."""
    state, found = _stat(pid)
    if not state:
        return _answers(pid)
    if found != started:
        return False
    return state not in "ZX" or _has_live_thread(pid)


def _answers(pid: int) -> bool:
    # /proc can be mounted so that it hides the processes of others; the kernel's answer does not depend on that.
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _has_live_thread(pid: int) -> bool:
    """Whether a zombie is only the first thread of a process whose others run on."""
    with suppress(OSError):
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        return any(_stat(thread)[0] not in ("", "Z", "X") for thread in threads if thread != pid)
    return False


def _stat(pid: int) -> tuple[str, str]:
    """The state of a process and when it started, in the kernel's ticks; empty when it cannot be seen."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", ""


def _booted_ms() -> int:
    for line in _text("/proc/stat").splitlines():
        if line.startswith("btime "):
            return int(line.split()[1]) * 1000
    return 0


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""
