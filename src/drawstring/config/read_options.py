"""The options of reads, typed; the call wins over the session, the session over the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drawstring.config.option import Option, boolean, one_of, text
from drawstring.errors import InvalidOption

SNAPSHOT = "snapshot"
READ_OPTIMIZED = "read_optimized"
INCREMENTAL = "incremental"

QUERY_TYPE = Option(
    "hoodie.datasource.query.type",
    one_of(SNAPSHOT, READ_OPTIMIZED, INCREMENTAL),
    SNAPSHOT,
    "What to read: the merged table, base files only, or what changed in a range of commits.",
    aliases=("hoodie.datasource.view.type",),
    allowed=(SNAPSHOT, READ_OPTIMIZED, INCREMENTAL),
)
INCREMENTAL_FORMAT = Option(
    "hoodie.datasource.query.incremental.format",
    one_of("latest_state", "cdc"),
    "latest_state",
    "What an incremental read returns: rows in their newest version, or change data (op, ts_ms, before, after) of a "
    "table that captures changes; that may begin with the first commit, and be a stream.",
    allowed=("latest_state", "cdc"),
)
AS_OF = Option(
    "as.of.instant",
    text,
    None,
    "Read the table as it was at this instant or time: yyyyMMddHHmmss[SSS], yyyy-MM-dd, yyyy-MM-dd HH:mm:ss[.SSS], or "
    "ISO 8601. Without a zone the digits are those of the timeline; a time to the second covers the second.",
    # How Spark's readers spell it; options reach the planner in lower case.
    aliases=("timestampAsOf", "versionAsOf", "timestampasof", "versionasof"),
)
BEGIN = Option(
    "hoodie.datasource.read.begin.instanttime",
    text,
    None,
    "Incremental reads return what was committed after this (completion time from version 8 on): a time as in "
    "as.of.instant, or earliest.",
    aliases=("hoodie.datasource.read.begin.instant.time",),
)
END = Option(
    "hoodie.datasource.read.end.instanttime",
    text,
    None,
    "Incremental reads return what was committed up to and including this; the newest commit by default.",
    aliases=("hoodie.datasource.read.end.instant.time",),
)
CHANGELOG = Option(
    "hoodie.datasource.read.changelog",
    boolean,
    False,
    "Read what commits changed instead of rows: the table's columns and _rowkind (+I, -U, +U, -D), from "
    "hoodie.datasource.read.begin.instanttime, by default the first commit, to …end.instanttime.",
    aliases=("read.changelog",),
    allowed=("true", "false"),
)
NET_CHANGES = Option(
    "hoodie.datasource.read.changelog.net",
    boolean,
    False,
    "Of hoodie.datasource.read.changelog only the outcome for each row over the range, or over each batch of a stream.",
    aliases=("read.changelog.net",),
    allowed=("true", "false"),
)
CHANGELOG_COMMITS = Option(
    "hoodie.datasource.read.changelog.commits",
    boolean,
    False,
    "Rows of hoodie.datasource.read.changelog name their commit, in the columns that Spark's CHANGES clause has "
    "(_change_type, _commit_version, _commit_timestamp), instead of _rowkind.",
    aliases=("read.changelog.commits",),
    allowed=("true", "false"),
)
USE_DSV2 = Option(
    "hoodie.datasource.read.use.dsv2",
    boolean,
    False,
    "Read through DataSource V2. As a table property: among the catalog's, or in hoodie.properties for reads "
    "by path too.",
    aliases=("hoodie.datasource.read.use.v2",),
    allowed=("true", "false"),
)
SCHEMA_ON_READ = Option(
    "hoodie.schema.on.read.enable",
    boolean,
    False,
    "Map columns by id. Tables that were altered this way carry the ids, and are read by them in any case.",
    aliases=("hoodie.datasource.read.schema.on.read.enable",),
    allowed=("true", "false"),
)
METADATA_ENABLE = Option(
    "hoodie.metadata.enable",
    boolean,
    True,
    "Use the metadata table if there is one.",
    allowed=("true", "false"),
)
DATA_SKIPPING = Option(
    "hoodie.enable.data.skipping",
    boolean,
    True,
    "Skip files by column statistics.",
    allowed=("true", "false"),
)
PATH_GLOB = Option(
    "hoodie.datasource.read.incr.path.glob",
    text,
    None,
    "Incremental reads return only rows of files whose path ends in a match of this pattern: * stands for any "
    "text, slashes too, ? for one character, [ab] for one of several, {a,b} for one of several texts.",
)
END_SCHEMA = Option(
    "hoodie.datasource.read.schema.use.end.instanttime",
    boolean,
    False,
    "Incremental reads return rows in the schema of the last commit of their range, not in the newest one.",
    allowed=("true", "false"),
)
FULL_SCAN_FALLBACK = Option(
    "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
    boolean,
    True,
    "When files of an incremental range were cleaned, read the newest files instead; an error otherwise.",
    allowed=("true", "false"),
)
SKIP_COMPACTIONS = Option(
    "hoodie.datasource.read.incr.skip_compact",
    boolean,
    False,
    "Incremental reads leave out the files of compactions.",
    allowed=("true", "false"),
)
SKIP_CLUSTERING = Option(
    "hoodie.datasource.read.incr.skip_cluster",
    boolean,
    False,
    "Incremental reads leave out the files of clustering.",
    allowed=("true", "false"),
)
MERGE_TYPE = Option(
    "hoodie.datasource.merge.type",
    one_of("payload_combine", "skip_merge"),
    "payload_combine",
    "How logs and base files of merge-on-read tables are put together. Only payload_combine is supported.",
    allowed=("payload_combine", "skip_merge"),
)


def _pushdown(name: str, doc: str) -> Option[bool]:
    key = f"hoodie.datasource.read.pushdown.{name}"
    return Option(key, boolean, True, doc, allowed=("true", "false"))


PUSH_FILTERS = _pushdown(
    "filters", "Let filters of a V2 read choose partitions and files, and reach Parquet."
)
PUSH_LIMIT = _pushdown("limit", "Let LIMIT of a V2 read leave out files by exact row counts.")
PUSH_TOP_N = _pushdown(
    "topn", "Let ORDER BY with LIMIT of a V2 read leave out files by bounds and row counts."
)
PUSH_AGGREGATES = _pushdown(
    "aggregates",
    "Answer COUNT, MIN and MAX of a V2 read, also by groups of partition columns, from metadata that proves them.",
)
PUSH_RUNTIME_FILTERS = _pushdown(
    "runtime-filters", "Let values that a join finds while it runs leave out files of a V2 read."
)
PUSH_COLUMN_STATISTICS = _pushdown(
    "column-statistics",
    "Tell Spark's cost-based optimiser bounds, null counts and distinct values of a V2 read.",
)
PUSH_PARTITIONING = _pushdown(
    "partitioning",
    "Tell Spark that rows of a V2 read lie together by bucket or by partition, so that joins and aggregates by them "
    "need no shuffle. Sessions ask for it by spark.sql.sources.v2.bucketing.enabled=true.",
)
PUSH_SAMPLE = _pushdown("sample", "Take the sample of TABLESAMPLE while files of a V2 read are read.")
PUSHDOWNS: Mapping[str, Option[bool]] = {
    "filters": PUSH_FILTERS,
    "limit": PUSH_LIMIT,
    "topn": PUSH_TOP_N,
    "aggregates": PUSH_AGGREGATES,
    "runtime-filters": PUSH_RUNTIME_FILTERS,
    "column-statistics": PUSH_COLUMN_STATISTICS,
    "partitioning": PUSH_PARTITIONING,
    "sample": PUSH_SAMPLE,
}
"""What a V2 read pushes down, each with its switch; the answer is the same with it on or off."""

INDEX_TYPE = Option(
    "hoodie.index.type",
    text,
    None,
    "The writers' index. BUCKET, with the number of buckets, lets a V2 read tell Spark that rows lie together by key.",
)
BUCKET_ENGINE = Option(
    "hoodie.index.bucket.engine", text, None, "The writers' kind of bucket index; SIMPLE is made use of."
)
BUCKETS = Option("hoodie.bucket.index.num.buckets", text, None, "The writers' number of buckets.")
BUCKET_FIELD = Option(
    "hoodie.bucket.index.hash.field",
    text,
    None,
    "The fields of the record key that the writers' bucket index hashes; all of them by default.",
)
BUCKET_INDEX = (INDEX_TYPE, BUCKET_ENGINE, BUCKETS, BUCKET_FIELD)
"""How writers spread rows over file groups; files are asked whether it is so."""

DELETE_FIELD = Option("hoodie.payload.delete.field", text, None, "Column that marks deleted records.")
DELETE_MARKER = Option("hoodie.payload.delete.marker", text, None, "Value of that column in deleted records.")

ALL: tuple[Option[Any], ...] = (
    QUERY_TYPE,
    INCREMENTAL_FORMAT,
    AS_OF,
    BEGIN,
    END,
    CHANGELOG,
    NET_CHANGES,
    CHANGELOG_COMMITS,
    USE_DSV2,
    SCHEMA_ON_READ,
    METADATA_ENABLE,
    DATA_SKIPPING,
    PATH_GLOB,
    END_SCHEMA,
    FULL_SCAN_FALLBACK,
    SKIP_COMPACTIONS,
    SKIP_CLUSTERING,
    MERGE_TYPE,
    *PUSHDOWNS.values(),
    *BUCKET_INDEX,
    DELETE_FIELD,
    DELETE_MARKER,
)
"""Every read option, for the documentation."""


REFUSED: Mapping[str, tuple[str, ...]] = {
    "hoodie.datasource.read.paths": ("",),
    "hoodie.datasource.read.partition.value.extractor.enabled": ("", "false"),
    "hoodie.datasource.read.create.filesystem.relation": ("", "false"),
    "hoodie.datasource.read.table.valued.function.timeline.relation": ("", "false"),
    "hoodie.read.timeline.holes.resolution.policy": ("", "fail"),
    "hoodie.datasource.read.incr.filters": ("",),
    "hoodie.datasource.read.incr.table.version": ("",),
    "hoodie.read.blob.inline.mode": ("",),
}
"""Options of Hudi that would change what a read returns and are not supported, with the values that do not."""


@dataclass(frozen=True)
class ReadOptions:
    """The options of one read.

    Example:
        >>> ReadOptions.of({"hoodie.datasource.query.type": "read_optimized"}).query_type
        'read_optimized'
    """

    query_type: str = SNAPSHOT
    incremental_format: str = "latest_state"
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None
    changelog: bool = False
    net_changes: bool = False
    changelog_commits: bool = False
    use_dsv2: bool = False
    schema_on_read: bool = False
    use_metadata_table: bool = True
    data_skipping: bool = True
    path_glob: str | None = None
    end_schema: bool = False
    full_scan_fallback: bool = True
    skip_compactions: bool = False
    skip_clustering: bool = False
    merge_type: str = "payload_combine"
    pushdowns: frozenset[str] = frozenset(PUSHDOWNS)
    merge_settings: Mapping[str, str] = field(default_factory=dict)
    bucket_index: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        call: Mapping[str, Any] | None = None,
        *,
        session: Mapping[str, Any] | None = None,
        table: Mapping[str, Any] | None = None,
    ) -> ReadOptions:
        """Resolve the options: call, then session, then table, then default.

        Raises `InvalidOption` for malformed values and for combinations that make no sense.
        """
        layers = (call, session, table)
        _refuse_contradictions(call or {})
        options = cls(
            query_type=QUERY_TYPE.find(*layers),
            incremental_format=INCREMENTAL_FORMAT.find(*layers),
            as_of=AS_OF.find(*layers),
            begin=BEGIN.find(*layers),
            end=END.find(*layers),
            changelog=CHANGELOG.find(*layers),
            net_changes=NET_CHANGES.find(*layers),
            changelog_commits=CHANGELOG_COMMITS.find(*layers),
            use_dsv2=USE_DSV2.find(*layers),
            schema_on_read=SCHEMA_ON_READ.find(*layers),
            use_metadata_table=METADATA_ENABLE.find(*layers),
            data_skipping=DATA_SKIPPING.find(*layers),
            path_glob=PATH_GLOB.find(*layers) or None,
            end_schema=END_SCHEMA.find(*layers),
            full_scan_fallback=FULL_SCAN_FALLBACK.find(*layers),
            skip_compactions=SKIP_COMPACTIONS.find(*layers),
            skip_clustering=SKIP_CLUSTERING.find(*layers),
            merge_type=MERGE_TYPE.find(*layers),
            pushdowns=frozenset(name for name, option in PUSHDOWNS.items() if option.find(*layers)),
            merge_settings=_merge_settings(call, session),
            bucket_index=_given(BUCKET_INDEX, *layers),
        )
        options._check()
        _refuse_others(call, session)
        return options

    @property
    def is_change_data(self) -> bool:
        """Whether Hudi's change data is asked for."""
        return self.query_type == INCREMENTAL and self.incremental_format == "cdc"

    def _check(self) -> None:
        if self.changelog and (self.as_of is not None or self.incremental_format == "cdc"):
            other = AS_OF.key if self.as_of is not None else INCREMENTAL_FORMAT.key
            raise InvalidOption(
                f"{CHANGELOG.key} and {other} ask for different things; leave one of them out.",
                condition="CONTRADICTING_OPTIONS",
                key=CHANGELOG.key,
                other=other,
            )
        if self.query_type == INCREMENTAL and self.as_of is not None:
            raise InvalidOption(
                f"{AS_OF.key} and an incremental read exclude each other; use {END.key} for the upper bound.",
                condition="AS_OF_WITH_INCREMENTAL",
                key=AS_OF.key,
            )


def _refuse_contradictions(call: Mapping[str, Any]) -> None:
    for option in ALL:
        given = option.contradiction(call)
        if given:
            raise InvalidOption(
                f"The options {' and '.join(f'{key}={value!r}' for key, value in given.items())} are names of one "
                f"option with different values; give {option.key} alone.",
                condition="CONTRADICTING_OPTIONS",
                key=option.key,
                value=given,
            )


def _refuse_others(*layers: Mapping[str, Any] | None) -> None:
    for layer in layers:
        for key, harmless in REFUSED.items():
            found = str((layer or {}).get(key, "")).strip()
            if found.lower() not in harmless:
                raise InvalidOption(
                    f"Option {key} is {found!r}; drawstring does not support it, and without it the read would "
                    "return something else. Remove the option, or read with Apache Hudi.",
                    condition="READ_OPTION_NOT_SUPPORTED",
                    key=key,
                    value=found,
                )


def _given(options: Iterable[Option[Any]], *layers: Mapping[str, Any] | None) -> dict[str, str]:
    found = {option.key: option.find(*layers) for option in options}
    return {key: value for key, value in found.items() if value}


def _merge_settings(*layers: Mapping[str, Any] | None) -> dict[str, str]:
    found = {option.key: option.find(*layers) or None for option in (DELETE_FIELD, DELETE_MARKER)}
    return {key: value for key, value in found.items() if value is not None}
