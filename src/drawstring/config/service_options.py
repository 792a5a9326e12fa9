"""The options of table services (cleaning, archival, compaction), under Hudi's keys and with Hudi's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drawstring.config.concurrency_options import ConcurrencyOptions
from drawstring.config.option import (
    Option,
    boolean,
    lowered,
    names,
    not_negative,
    not_supported,
    one_of,
    positive,
    text,
)
from drawstring.errors import InvalidOption

KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS = (
    "KEEP_LATEST_COMMITS",
    "KEEP_LATEST_BY_HOURS",
    "KEEP_LATEST_FILE_VERSIONS",
)
CLEAN_POLICIES = (KEEP_COMMITS, KEEP_HOURS, KEEP_VERSIONS)
NUM_COMMITS, NUM_AFTER_REQUEST, TIME_ELAPSED, NUM_AND_TIME, NUM_OR_TIME = (
    "NUM_COMMITS",
    "NUM_COMMITS_AFTER_LAST_REQUEST",
    "TIME_ELAPSED",
    "NUM_AND_TIME",
    "NUM_OR_TIME",
)
COMPACTION_TRIGGERS = (NUM_COMMITS, NUM_AFTER_REQUEST, TIME_ELAPSED, NUM_AND_TIME, NUM_OR_TIME)
BY_LOG_SIZE, BY_LOG_NUMBER, BOUNDED, UNBOUNDED = (
    "LogFileSizeBasedCompactionStrategy",
    "LogFileNumBasedCompactionStrategy",
    "BoundedIOCompactionStrategy",
    "UnBoundedCompactionStrategy",
)
COMPACTION_STRATEGIES = (BY_LOG_SIZE, BY_LOG_NUMBER, BOUNDED, UNBOUNDED)
_STRATEGY_PACKAGE = "org.apache.hudi.table.action.compact.strategy."
_FOREVER = (1 << 63) - 1


def _flag(key: str, default: bool, doc: str, aliases: tuple[str, ...] = ()) -> Option[bool]:
    return Option(key, boolean, default, doc, aliases=aliases, allowed=("true", "false"))


def _hours_or_never(value: str) -> int | None:
    if value.strip() == "-1":
        return None
    return positive(value)


def _strategy(value: str) -> str:
    return one_of(*COMPACTION_STRATEGIES)(value.strip().removeprefix(_STRATEGY_PACKAGE))


SERVICES = _flag(
    "hoodie.table.services.enabled", True, "Whether any table service runs after a write of its own accord."
)
CLEAN_AUTOMATIC = _flag("hoodie.clean.automatic", True, "Clean the table after each write.")
CLEAN_POLICY = Option(
    "hoodie.clean.policy",
    one_of(*CLEAN_POLICIES),
    KEEP_COMMITS,
    "How it is told which old file versions stay: by commits, hours, or a number of versions.",
    aliases=("hoodie.cleaner.policy",),
    allowed=CLEAN_POLICIES,
)
CLEAN_COMMITS = Option(
    "hoodie.clean.commits.retained",
    positive,
    10,
    "How many of the newest commits can still be read as they were, with KEEP_LATEST_COMMITS.",
    aliases=("hoodie.cleaner.commits.retained",),
)
CLEAN_HOURS = Option(
    "hoodie.clean.hours.retained",
    not_negative,
    24,
    "For how many hours commits can still be read as they were, with KEEP_LATEST_BY_HOURS.",
    aliases=("hoodie.cleaner.hours.retained",),
)
CLEAN_VERSIONS = Option(
    "hoodie.clean.fileversions.retained",
    positive,
    3,
    "How many versions of each file group stay, with KEEP_LATEST_FILE_VERSIONS.",
    aliases=("hoodie.cleaner.fileversions.retained",),
)
CLEAN_TRIGGER = Option(
    "hoodie.clean.trigger.strategy",
    one_of(NUM_COMMITS),
    NUM_COMMITS,
    "What a clean after a write waits for: commits since the last clean.",
    allowed=(NUM_COMMITS,),
)
CLEAN_TRIGGER_COMMITS = Option(
    "hoodie.clean.trigger.max.commits",
    positive,
    1,
    "A clean after a write waits until there are so many commits since the last clean.",
    aliases=("hoodie.clean.max.commits",),
)
CLEAN_INCREMENTAL = _flag(
    "hoodie.clean.incremental.enabled",
    True,
    "Look only at partitions that changed since the last clean.",
    aliases=("hoodie.cleaner.incremental.mode",),
)
CLEAN_MOST_COMMITS = Option(
    "hoodie.clean.max.commits.to.clean",
    positive,
    _FOREVER,
    "How many commits one clean goes on at most, by commits or hours.",
)
CLEAN_PARTITION_REGEX: Option[str | None] = Option(
    "hoodie.clean.partition.filter.regex",
    text,
    None,
    "Clean only partitions whose path this pattern matches; where cleaning is not incremental.",
    aliases=("hoodie.cleaner.partition.filter.regex",),
)
CLEAN_PARTITIONS: Option[tuple[str, ...]] = Option(
    "hoodie.clean.partition.filter.selected",
    names,
    (),
    "Clean only these partition paths; where cleaning is not incremental.",
    aliases=("hoodie.cleaner.partition.filter.selected",),
)
EMPTY_CLEAN_HOURS: Option[int | None] = Option(
    "hoodie.write.empty.clean.interval.hours",
    _hours_or_never,
    None,
    "After so many hours a clean that has nothing to delete is recorded, so that the next one looks at less. -1 for "
    "never.",
)
ARCHIVE_AUTOMATIC = _flag("hoodie.archive.automatic", True, "Archive old instants after each write.")
KEEP_MIN = Option(
    "hoodie.keep.min.commits",
    positive,
    20,
    "How many commits stay on the active timeline when it is archived.",
)
KEEP_MAX = Option(
    "hoodie.keep.max.commits", positive, 30, "Archival begins when there are more commits than this."
)
BEYOND_SAVEPOINT = _flag(
    "hoodie.archive.beyond.savepoint", False, "Archive also what is newer than the first savepoint."
)
BLOCK_ON_CLEAN = _flag(
    "hoodie.archive.block.on.latest.clean.ectr",
    False,
    "Archive nothing that the last clean still retained.",
)
HISTORY_BATCH = Option(
    "hoodie.timeline.compaction.batch.size",
    positive,
    10,
    "So many files of a level of the archived timeline become one of the next level.",
)
COMPACT_INLINE = _flag(
    "hoodie.compact.inline", False, "Schedule a compaction after a write when it is due, and run it."
)
COMPACT_ASYNC = _flag(
    "hoodie.datasource.compaction.async.enable",
    True,
    "Leave compactions to somebody else; false is another way to say hoodie.compact.inline=true.",
)
COMPACT_SCHEDULE = _flag(
    "hoodie.compact.schedule.inline",
    False,
    "Schedule a compaction after a write when it is due; it is run elsewhere.",
)
COMPACT_TRIGGER = Option(
    "hoodie.compact.inline.trigger.strategy",
    one_of(*COMPACTION_TRIGGERS),
    NUM_COMMITS,
    "When a compaction is due: by delta commits or time since the last one.",
    allowed=COMPACTION_TRIGGERS,
)
COMPACT_COMMITS = Option(
    "hoodie.compact.inline.max.delta.commits",
    positive,
    5,
    "A compaction is due after so many delta commits.",
)
COMPACT_SECONDS = Option(
    "hoodie.compact.inline.max.delta.seconds", positive, 3600, "A compaction is due after so many seconds."
)
COMPACT_STRATEGY = Option(
    "hoodie.compaction.strategy",
    _strategy,
    BY_LOG_SIZE,
    "Which file slices are compacted first, by the class name of Hudi's strategy.",
    allowed=COMPACTION_STRATEGIES,
)
COMPACT_TARGET_IO = Option(
    "hoodie.compaction.target.io",
    positive,
    512_000,
    "Megabytes that one compaction reads and writes at most.",
)
COMPACT_LOG_BYTES = Option(
    "hoodie.compaction.logfile.size.threshold",
    not_negative,
    0,
    "Slices with fewer bytes of logs are left alone by LogFileSizeBasedCompactionStrategy.",
)
COMPACT_LOG_FILES = Option(
    "hoodie.compaction.logfile.num.threshold",
    not_negative,
    0,
    "Slices with fewer log files are left alone by LogFileNumBasedCompactionStrategy.",
)
LOG_COMPACT_INLINE = _flag(
    "hoodie.log.compaction.inline",
    False,
    "After a write, merge the log blocks of file groups that have many of them into one, without their base files.",
)
LOG_COMPACT_BLOCKS = Option(
    "hoodie.log.compaction.blocks.threshold",
    positive,
    5,
    "Logs are merged with one another after so many delta commits, in file groups with so many log blocks.",
)

ALL: tuple[Option[Any], ...] = (
    SERVICES,
    CLEAN_AUTOMATIC,
    CLEAN_POLICY,
    CLEAN_COMMITS,
    CLEAN_HOURS,
    CLEAN_VERSIONS,
    CLEAN_TRIGGER,
    CLEAN_TRIGGER_COMMITS,
    CLEAN_INCREMENTAL,
    CLEAN_MOST_COMMITS,
    CLEAN_PARTITION_REGEX,
    CLEAN_PARTITIONS,
    EMPTY_CLEAN_HOURS,
    ARCHIVE_AUTOMATIC,
    KEEP_MIN,
    KEEP_MAX,
    BEYOND_SAVEPOINT,
    BLOCK_ON_CLEAN,
    HISTORY_BATCH,
    COMPACT_INLINE,
    COMPACT_ASYNC,
    COMPACT_SCHEDULE,
    COMPACT_TRIGGER,
    COMPACT_COMMITS,
    COMPACT_SECONDS,
    COMPACT_STRATEGY,
    COMPACT_TARGET_IO,
    COMPACT_LOG_BYTES,
    COMPACT_LOG_FILES,
    LOG_COMPACT_INLINE,
    LOG_COMPACT_BLOCKS,
)


@dataclass(frozen=True)
class CleanOptions:
    """What a clean keeps, and when one runs after a write."""

    automatic: bool = True
    policy: str = KEEP_COMMITS
    commits: int = CLEAN_COMMITS.default
    hours: int = CLEAN_HOURS.default
    file_versions: int = CLEAN_VERSIONS.default
    trigger_commits: int = CLEAN_TRIGGER_COMMITS.default
    incremental: bool = True
    most_commits: int = _FOREVER
    partition_regex: str | None = None
    partitions: tuple[str, ...] = ()
    empty_hours: int | None = None


@dataclass(frozen=True)
class ArchiveOptions:
    """How many commits stay on the active timeline."""

    automatic: bool = True
    min_commits: int = KEEP_MIN.default
    max_commits: int = KEEP_MAX.default
    beyond_savepoint: bool = False
    block_on_clean: bool = False
    merged_files: int = HISTORY_BATCH.default


@dataclass(frozen=True)
class CompactOptions:
    """When a compaction is due, and which slices it takes."""

    inline: bool = False
    schedule: bool = False
    trigger: str = NUM_COMMITS
    commits: int = COMPACT_COMMITS.default
    seconds: int = COMPACT_SECONDS.default
    strategy: str = BY_LOG_SIZE
    target_io_mb: int = COMPACT_TARGET_IO.default
    min_log_bytes: int = 0
    min_log_files: int = 0
    logs_inline: bool = False
    log_blocks: int = LOG_COMPACT_BLOCKS.default


@dataclass(frozen=True)
class ServiceOptions:
    """The options of table services.

    Example:
        >>> ServiceOptions.of({"hoodie.cleaner.commits.retained": 3}).clean.commits
        3
    """

    enabled: bool = True
    clean: CleanOptions = field(default_factory=CleanOptions)
    archive: ArchiveOptions = field(default_factory=ArchiveOptions)
    compact: CompactOptions = field(default_factory=CompactOptions)
    concurrency: ConcurrencyOptions = field(default_factory=ConcurrencyOptions)

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> ServiceOptions:
        """Resolve the options, layers from the strongest; raises `InvalidOption` for values that contradict."""
        found = tuple(map(lowered, layers))
        return cls(
            SERVICES.find(*found),
            _clean(found),
            _archive(found),
            _compact(found),
            ConcurrencyOptions.of(*found),
        )


def _clean(layers: tuple[Mapping[str, str], ...]) -> CleanOptions:
    CLEAN_TRIGGER.find(*layers)
    return CleanOptions(
        automatic=CLEAN_AUTOMATIC.find(*layers),
        policy=CLEAN_POLICY.find(*layers),
        commits=CLEAN_COMMITS.find(*layers),
        hours=CLEAN_HOURS.find(*layers),
        file_versions=CLEAN_VERSIONS.find(*layers),
        trigger_commits=CLEAN_TRIGGER_COMMITS.find(*layers),
        incremental=CLEAN_INCREMENTAL.find(*layers),
        most_commits=CLEAN_MOST_COMMITS.find(*layers),
        partition_regex=CLEAN_PARTITION_REGEX.find(*layers) or None,
        partitions=CLEAN_PARTITIONS.find(*layers),
        empty_hours=EMPTY_CLEAN_HOURS.find(*layers),
    )


def _archive(layers: tuple[Mapping[str, str], ...]) -> ArchiveOptions:
    found = ArchiveOptions(
        automatic=ARCHIVE_AUTOMATIC.find(*layers),
        min_commits=KEEP_MIN.find(*layers),
        max_commits=KEEP_MAX.find(*layers),
        beyond_savepoint=BEYOND_SAVEPOINT.find(*layers),
        block_on_clean=BLOCK_ON_CLEAN.find(*layers),
        merged_files=max(2, HISTORY_BATCH.find(*layers)),
    )
    if found.max_commits <= found.min_commits:
        raise _contradiction(
            KEEP_MAX.key, found.max_commits, f"more than {KEEP_MIN.key}, which is {found.min_commits}"
        )
    return found


def _contradiction(key: str, value: int, expected: str) -> InvalidOption:
    return InvalidOption(
        f"Option {key} is {value}; expected {expected}.",
        condition="CONTRADICTING_OPTIONS",
        key=key,
        value=str(value),
    )


def _compact(layers: tuple[Mapping[str, str], ...]) -> CompactOptions:
    found = CompactOptions(
        inline=COMPACT_INLINE.find(*layers) or not COMPACT_ASYNC.find(*layers),
        schedule=COMPACT_SCHEDULE.find(*layers),
        trigger=COMPACT_TRIGGER.find(*layers),
        commits=COMPACT_COMMITS.find(*layers),
        seconds=COMPACT_SECONDS.find(*layers),
        strategy=_known_strategy(layers),
        target_io_mb=COMPACT_TARGET_IO.find(*layers),
        min_log_bytes=COMPACT_LOG_BYTES.find(*layers),
        min_log_files=COMPACT_LOG_FILES.find(*layers),
        logs_inline=LOG_COMPACT_INLINE.find(*layers),
        log_blocks=max(2, LOG_COMPACT_BLOCKS.find(*layers)),
    )
    if found.inline and found.schedule:
        raise InvalidOption(
            f"Options {COMPACT_INLINE.key} and {COMPACT_SCHEDULE.key} are both true; expected one of them: the first "
            "runs what it schedules, the second leaves that to somebody else.",
            condition="CONTRADICTING_OPTIONS",
            key=COMPACT_SCHEDULE.key,
            value="true",
        )
    return found


def _known_strategy(layers: tuple[Mapping[str, str], ...]) -> str:
    given = next((raw for layer in layers if (raw := COMPACT_STRATEGY.raw(layer))), None)
    if given is not None and "." in given and not given.strip().startswith(_STRATEGY_PACKAGE):
        raise not_supported(
            COMPACT_STRATEGY.key, given, "classes of the JVM are not run", allowed=COMPACTION_STRATEGIES
        )
    return COMPACT_STRATEGY.find(*layers)
