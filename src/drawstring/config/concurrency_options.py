"""The options of writes that concern other writers: concurrency mode, locks, conflicts, heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drawstring.config.option import Option, boolean, not_negative, not_supported, one_of, positive, text

SINGLE_WRITER = "single_writer"
OPTIMISTIC = "optimistic_concurrency_control"
NON_BLOCKING = "non_blocking_concurrency_control"
_MODES = (SINGLE_WRITER, OPTIMISTIC, NON_BLOCKING)

EAGER, LAZY, NEVER = "EAGER", "LAZY", "NEVER"
_FAILED_WRITES = (EAGER, LAZY, NEVER)

SIMPLE_SCHEMA_STRATEGY, RECONCILE_SCHEMAS = "simple", "reconcile"
_SCHEMA_STRATEGIES = (SIMPLE_SCHEMA_STRATEGY, RECONCILE_SCHEMAS)

LOCK_PROVIDERS = ("FileSystemBasedLockProvider", "InProcessLockProvider", "StorageBasedLockProvider")
"""Lock providers that are honoured, by simple class name; every other one is refused."""

_PROVIDER_PACKAGE = "org.apache.hudi.client.transaction.lock."
_LOCK_PREFIX = "hoodie.write.lock."

MODE = Option(
    "hoodie.write.concurrency.mode",
    one_of(*_MODES),
    SINGLE_WRITER,
    "Whether several writers are expected. The table is locked and conflicts are looked for in every mode; with "
    "non_blocking_concurrency_control, appends to the same bucket of a merge-on-read table are none.",
    allowed=_MODES,
)
CONFLICT_RETRIES = Option(
    "hoodie.write.num.retries.on.conflict.failures",
    not_negative,
    4,
    "How often a write that met a conflict is tried again on the new state of the table. Hudi's default is 0.",
)
LOCK_PROVIDER: Option[str | None] = Option(
    "hoodie.write.lock.provider",
    text,
    None,
    "Class that locks the table, by Hudi's name. The file-system lock by default.",
    allowed=LOCK_PROVIDERS,
)
LOCK_WAIT = Option(
    "hoodie.write.lock.wait_time_ms",
    not_negative,
    60_000,
    "How long to wait for the table's lock, in milliseconds.",
)
LOCK_CLIENT_RETRIES = Option(
    "hoodie.write.lock.client.num_retries",
    not_negative,
    0,
    "How often the lock is waited for once more. Hudi's default is 50.",
)
LOCK_CLIENT_PAUSE = Option(
    "hoodie.write.lock.client.wait_time_ms_between_retry",
    not_negative,
    5_000,
    "The pause before the lock is waited for once more, in milliseconds.",
)
SCHEMA_CONFLICTS = Option(
    "hoodie.write.concurrency.schema.conflict.resolution.enable",
    boolean,
    True,
    "Look for writers that changed the table's schema meanwhile.",
    allowed=("true", "false"),
)
SCHEMA_STRATEGY = Option(
    "hoodie.write.concurrency.schema.conflict.resolution.strategy",
    one_of(*_SCHEMA_STRATEGIES),
    SIMPLE_SCHEMA_STRATEGY,
    "What becomes of two schema changes at once: simple refuses those that differ, as Hudi does; reconcile takes the "
    "union of compatible ones. drawstring's own.",
    allowed=_SCHEMA_STRATEGIES,
)
FAILED_WRITES: Option[str | None] = Option(
    "hoodie.clean.failed.writes.policy",
    one_of(*_FAILED_WRITES),
    None,
    "When writes that died are rolled back: before the next write (EAGER), once their heartbeat has stopped (LAZY), or "
    "by hand only (NEVER). LAZY where several writers are expected, else EAGER.",
    aliases=("hoodie.cleaner.policy.failed.writes",),
    allowed=_FAILED_WRITES,
)
HEARTBEAT_INTERVAL = Option(
    "hoodie.client.heartbeat.interval_in_ms",
    positive,
    60_000,
    "How often a writer at work says that it lives, in milliseconds.",
)
HEARTBEAT_MISSES = Option(
    "hoodie.client.heartbeat.tolerable.misses",
    not_negative,
    2,
    "How many heartbeats may be missed before a writer counts as dead.",
)

ALL: tuple[Option[Any], ...] = (
    MODE,
    CONFLICT_RETRIES,
    LOCK_PROVIDER,
    LOCK_WAIT,
    LOCK_CLIENT_RETRIES,
    LOCK_CLIENT_PAUSE,
    SCHEMA_CONFLICTS,
    SCHEMA_STRATEGY,
    FAILED_WRITES,
    HEARTBEAT_INTERVAL,
    HEARTBEAT_MISSES,
)


@dataclass(frozen=True)
class ConcurrencyOptions:
    """How a write behaves beside others. `lock_settings` holds every `hoodie.write.lock.*` key as it was given.

    Example:
        >>> ConcurrencyOptions.of({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}).failed_writes
        'LAZY'
    """

    mode: str = SINGLE_WRITER
    conflict_retries: int = CONFLICT_RETRIES.default
    lock_provider: str | None = None
    lock_settings: Mapping[str, str] = field(default_factory=dict)
    lock_wait_seconds: float = LOCK_WAIT.default / 1000
    resolve_schema_conflicts: bool = True
    schema_strategy: str = SIMPLE_SCHEMA_STRATEGY
    failed_writes: str = EAGER
    rolls_back_without_heartbeat: bool = False
    heartbeat_interval_seconds: float = HEARTBEAT_INTERVAL.default / 1000
    heartbeat_tolerable_misses: int = HEARTBEAT_MISSES.default

    @property
    def is_non_blocking(self) -> bool:
        """Whether appends of several writers to one file group all stand."""
        return self.mode == NON_BLOCKING

    @property
    def heartbeat_expiry_seconds(self) -> float:
        """How old a heartbeat is when its writer counts as dead, by Hudi's rule."""
        return self.heartbeat_interval_seconds * self.heartbeat_tolerable_misses

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> ConcurrencyOptions:
        """Resolve the options, layers from the strongest to the weakest.

        Raises `InvalidOption` for malformed values, and for a lock provider that drawstring lacks.
        """
        mode = MODE.find(*layers)
        return cls(
            mode=mode,
            conflict_retries=CONFLICT_RETRIES.find(*layers),
            lock_provider=_lock_provider(*layers),
            lock_settings=_lock_settings(*layers),
            lock_wait_seconds=_lock_wait(*layers),
            resolve_schema_conflicts=SCHEMA_CONFLICTS.find(*layers),
            schema_strategy=SCHEMA_STRATEGY.find(*layers),
            failed_writes=FAILED_WRITES.find(*layers) or (EAGER if mode == SINGLE_WRITER else LAZY),
            # Asked for, EAGER says that nobody else is at work; as a default it proves nothing.
            rolls_back_without_heartbeat=FAILED_WRITES.find(*layers) == EAGER,
            heartbeat_interval_seconds=HEARTBEAT_INTERVAL.find(*layers) / 1000,
            heartbeat_tolerable_misses=HEARTBEAT_MISSES.find(*layers),
        )


def _lock_provider(*layers: Mapping[str, Any] | None) -> str | None:
    """The provider's simple class name."""
    found = LOCK_PROVIDER.find(*layers)
    if not found:
        return None
    simple = found.strip().removeprefix(_PROVIDER_PACKAGE)
    if simple not in LOCK_PROVIDERS:
        raise not_supported(
            LOCK_PROVIDER.key,
            found,
            "drawstring cannot take that lock, and writers that lock elsewhere do not exclude each other",
            allowed=LOCK_PROVIDERS,
        )
    return simple


def _lock_wait(*layers: Mapping[str, Any] | None) -> float:
    """The seconds that Hudi's lock manager would try at most: one try, and those that `client.num_retries` adds."""
    one, retries = LOCK_WAIT.find(*layers), LOCK_CLIENT_RETRIES.find(*layers)
    return (one + retries * (one + LOCK_CLIENT_PAUSE.find(*layers))) / 1000


def _lock_settings(*layers: Mapping[str, Any] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for layer in reversed(layers):
        found.update(
            (key.lower(), str(value))
            for key, value in (layer or {}).items()
            if key.lower().startswith(_LOCK_PREFIX) and value is not None
        )
    return found
