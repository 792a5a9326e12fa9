"""What drawstring does with the write options of Apache Hudi, as data.

An option that is honoured has a typed declaration (`write_options.ALL`) and no row here, or one that says which part of
drawstring takes it. To honour a key, declare it and take it out of its row here; a test finds keys that stand in both
places, and keys that stand in neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CONCERNS_READS = "concerns reads"


class Status(Enum):
    """What becomes of a key."""

    HONOURED = "honoured"
    HARMLESS = "harmless"
    REFUSED = "refused"


@dataclass(frozen=True)
class Rule:
    """What happens to some keys of Hudi, and why; `*` at the end of a key stands for all that begin so.

    A refused key is refused when its value is none of `accepts` (Hudi's own default without it): those are what
    drawstring does in any case. `same_as` names an option whose value is accepted too. Of several rules for a key the
    most specific counts. An `open` rule covers keys that the list of Hudi's keys does not hold.
    """

    keys: tuple[str, ...]
    reason: str
    status: Status = Status.HARMLESS
    accepts: tuple[str, ...] | None = None
    same_as: str | None = None
    open: bool = False


def _harmless(reason: str, *keys: str) -> Rule:
    return Rule(keys, reason)


def _refused(
    reason: str, *keys: str, accepts: tuple[str, ...] | None = None, same_as: str | None = None
) -> Rule:
    return Rule(keys, reason, Status.REFUSED, accepts=accepts, same_as=same_as)


def _honoured(by: str, *keys: str) -> Rule:
    return Rule(keys, by, Status.HONOURED)


def _elsewhere(reason: str, *prefixes: str) -> Rule:
    return Rule(prefixes, reason, open=True)


_HONOURED = (
    _honoured(
        "by the lock provider",
        "hoodie.write.lock.filesystem.*",
        "hoodie.write.lock.storage.*",
    ),
    _honoured("by timestamp-based and custom key generators", "hoodie.keygen.timebased.*"),
)

_HARMLESS = (
    _harmless(
        "tunes parts of Hudi's engine that drawstring does not have",
        "hoodie.upsert.shuffle.parallelism",
        "hoodie.insert.shuffle.parallelism",
        "hoodie.delete.shuffle.parallelism",
        "hoodie.finalize.write.parallelism",
        "hoodie.rollback.parallelism",
        "hoodie.file.listing.parallelism",
        "hoodie.markers.*",
        "hoodie.embed.timeline.server*",
        "hoodie.filesystem.view.*",
        "hoodie.filesystem.remote.*",
        "hoodie.memory.*",
        "hoodie.common.*",
        "hoodie.write.buffer.*",
        "hoodie.write.executor.*",
        "hoodie.write.status.storage.level",
        "hoodie.write.tagged.record.storage.level",
        "hoodie.write.merge.handle.fallback",
        "hoodie.datasource.write.row.writer.enable",
        "hoodie.release.resource.on.completion.enable",
        "hoodie.sensitive.config.keys",
        "hoodie.write.application.id",
        "hoodie.simple.index.*",
        "hoodie.global.simple.index.parallelism",
        "hoodie.global.index.reconcile.parallelism",
        "hoodie.spark.sql.optimized.writes.enable",
        "hoodie.is.update.record.for.mor",
        "hoodie.archive.delete.parallelism",
        "hoodie.cdc.file.group.iterator.memory.spill.bytes",
    ),
    _harmless(
        "internal to Hudi",
        "_*",
        "hoodie.internal.*",
        "hoodie.bulkinsert.are.partitioner.records.sorted",
        "hoodie.bulkinsert.overwrite.operation.type",
        "hoodie.bulkinsert.schema.ddl",
        "hoodie.valid.commits.list",
    ),
    _harmless(
        "counts only with hoodie.bulkinsert.user.defined.partitioner.class, which is refused",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    ),
    _harmless(
        CONCERNS_READS,
        "as.of.instant",
        "hoodie.datasource.read.*",
        "hoodie.datasource.query.*",
        "hoodie.datasource.merge.type",
        "hoodie.datasource.streaming.startOffset",
        "hoodie.enable.data.skipping",
        "hoodie.file.index.*",
        "hoodie.file.group.reader.enabled",
        "hoodie.hfile.block.cache.*",
        "hoodie.merge.use.record.positions",
        "hoodie.compaction.lazy.block.read",
        "hoodie.compaction.reverse.log.read",
        "hoodie.read.*",
        "hoodie.incremental.use.database",
        "hoodie.query.as.ro.table",
        "hoodie.realtime.merge.skip",
        "hoodie.spark.polaris.catalog.class",
    ),
    _harmless(
        "concerns reads; a table whose columns have ids is refused by name when it is written",
        "hoodie.schema.on.read.enable",
    ),
    _harmless(
        "retries are those of the store's own client",
        "hoodie.filesystem.operation.retry.*",
    ),
    _harmless(
        "drawstring writes only to strongly consistent stores",
        "hoodie.consistency.check.*",
        "hoodie.optimistic.consistency.guard.sleep_time_ms",
        "hoodie.fs.atomic_creation.support",
    ),
    _harmless("the table is at the path of the write", "hoodie.base.path"),
    _harmless("hoodie.table.name names the table", "hoodie.datasource.write.table.name"),
    _harmless(
        "tunes how Hudi's cleaner runs; drawstring's comes after the write, and deletes in threads",
        "hoodie.clean.async.enabled",
        "hoodie.clean.delete.bootstrap.base.file",
        "hoodie.clean.multiple.enabled",
        "hoodie.clean.optimize.using.local.engine.context",
        "hoodie.clean.parallelism",
    ),
    _harmless(
        "tunes how Hudi's archiver runs; drawstring's comes after the write, and moves all that is old enough",
        "hoodie.archive.async",
        "hoodie.archive.limit.instants",
        "hoodie.commits.archival.batch",
        "hoodie.timeline.compaction.target.file.max.bytes",
        "hoodie.timeline.manifest.retained.versions",
    ),
    _harmless(
        "a service that fails after a commit never fails the write; its result and the log tell of it",
        "hoodie.fail.on.timeline.archiving",
        "hoodie.fail.writes.on.inline.table.service.exception",
        "hoodie.write.can.ignore.post.commit.failures",
    ),
    _harmless(
        "how services find their work does not change what they do",
        "hoodie.table.services.incremental.enabled",
    ),
    _harmless(
        "counts only with strategies of compaction that drawstring refuses",
        "hoodie.compaction.daybased.target.partitions",
        "hoodie.compaction.partition.path.regex",
    ),
    _harmless(
        "counts only where clustering runs, which drawstring does not do",
        "hoodie.clustering.*",
        "hoodie.layout.optimize.*",
    ),
    _harmless("counts only where partitions expire, which drawstring does not do", "hoodie.partition.ttl.*"),
    _harmless(
        "counts only with hoodie.table.service.manager.enabled, which is refused",
        "hoodie.table.service.manager.*",
    ),
    _harmless("counts only with hoodie.metaserver.enabled, which is refused", "hoodie.metaserver.*"),
    _harmless("counts only with hoodie.errortable.enable, which is refused", "hoodie.errortable.*"),
    _harmless("counts only for the operation bootstrap, which is refused", "hoodie.bootstrap.*"),
    _harmless(
        "counts only with hoodie.metrics.on, which is refused",
        "hoodie.metrics.*",
        "hoodie.metricscompaction.*",
    ),
    _harmless(
        "counts only where a catalog is synchronised, which is refused",
        "hoodie.datasource.hive_sync.*",
        "hoodie.datasource.meta.sync.*",
        "hoodie.datasource.meta_sync.*",
        "hoodie.meta.sync.*",
        "hoodie.meta_sync.*",
        "hoodie.datasource.partition_extractor_class",
    ),
    _harmless(
        "counts only with hoodie.write.commit.callback.on, which is refused", "hoodie.write.commit.callback.*"
    ),
    _harmless(
        "counts only with hoodie.precommit.validators, which is refused", "hoodie.precommit.validators.*"
    ),
    _harmless(
        "how the metadata table is kept and built",
        "hoodie.metadata.*",
    ),
    _harmless(
        "counts only for consistent hashing, which is refused",
        "hoodie.bucket.index.max.num.buckets",
        "hoodie.bucket.index.min.num.buckets",
        "hoodie.bucket.index.split.threshold",
        "hoodie.bucket.index.merge.threshold",
    ),
    _harmless(
        "tunes look-ups of Hudi's own",
        "hoodie.bucket.index.query.pruning",
        "hoodie.bucket.index.remote.partitioner.enable",
        "hoodie.record.index.*",
    ),
    _harmless(
        "counts only for a kind of index that is refused",
        "hoodie.expression.index.*",
        "hoodie.index.name",
    ),
    _harmless("tunes the look-ups of Hudi's bloom index", "hoodie.bloom.index.*"),
    _harmless(
        "chosen by drawstring; readers find the same rows",
        "hoodie.parquet.block.size",
        "hoodie.parquet.page.size",
        "hoodie.parquet.compression.ratio",
        "hoodie.parquet.dictionary.enabled",
        "hoodie.parquet.field_id.write.enabled",
        "hoodie.parquet.flink.rowdata.write.support.class",
    ),
    _harmless(
        "counts only for other kinds of base files, which are refused",
        "hoodie.orc.*",
        "hoodie.hfile.*",
        "hoodie.lance.*",
    ),
    _harmless(
        "the encoding is told from the keys that the table has",
        "hoodie.write.complex.keygen.validation.enable",
    ),
    _harmless(
        "files are limited by bytes, not by records",
        "hoodie.copyonwrite.insert.auto.split",
        "hoodie.copyonwrite.insert.split.size",
        "hoodie.record.size.estimation.threshold",
        "hoodie.record.size.estimator.average.metadata.size",
    ),
    _harmless("a key is deleted once, however often it is named", "hoodie.combine.before.delete"),
    _harmless("every write is checked against the table's schema", "hoodie.avro.schema.validate"),
    _harmless("a row that cannot be written fails the whole write", "hoodie.write.ignore.failed"),
    _harmless("the default partition is written like any other", "hoodie.skip.default.partition.validation"),
    _harmless(
        "files of attempts that did not win are never published",
        "hoodie.block.writes.on.speculative.execution",
        "hoodie.fail.job.on.duplicate.data.file.detection",
    ),
    _harmless(
        "a conflict is found before anything is published",
        "hoodie.write.concurrency.early.*",
        "hoodie.write.concurrency.async.*",
    ),
    _harmless(
        "counts only for a lock provider that is refused",
        "hoodie.write.lock.zookeeper.*",
        "hoodie.write.lock.hivemetastore.*",
        "hoodie.write.lock.heartbeat_interval_ms",
        "hoodie.write.lock.app_id",
    ),
    _harmless(
        "the lock is waited for as long as hoodie.write.lock.wait_time_ms says",
        "hoodie.write.lock.num_retries",
        "hoodie.write.lock.wait_time_ms_between_retry",
        "hoodie.write.lock.max_wait_time_ms_between_retry",
        "hoodie.auto.adjust.lock.configs",
    ),
    _harmless("instants are later than all that the table has", "hoodie.time.generator.*"),
    _harmless("markers are direct files, which every Hudi rolls back by", "hoodie.write.markers.type"),
    _harmless(
        "drawstring rolls back by markers and by what it finds",
        "hoodie.rollback.using.markers",
        "hoodie.rollback.avoid.duplicate.plan",
        "hoodie.rollback.instant.backup.dir",
    ),
    _harmless(
        "no table is upgraded; a table of another version is refused by name when it is written",
        "hoodie.write.auto.upgrade",
    ),
    _harmless(
        "kept by the table itself; a write does not set it",
        "hoodie.table.checksum",
        "hoodie.table.create.schema",
        "hoodie.table.index.defs.path",
        "hoodie.table.legacy.payload.class",
        "hoodie.table.metadata.partitions",
        "hoodie.table.metadata.partitions.inflight",
        "hoodie.table.partition_extractor_class",
        "hoodie.table.secondary.indexes.metadata",
        "hoodie.archivelog.folder",
        "hoodie.vector.columns",
    ),
    _harmless(
        "compactions never run beside a streaming write",
        "hoodie.datasource.write.streaming.disable.compaction",
    ),
    _harmless("drawstring has no MERGE INTO", "hoodie.spark.sql.merge.into.partial.updates"),
    _harmless(
        "counts only with hoodie.write.track.event.time.watermark, which is refused", "hoodie.payload.event.*"
    ),
    _harmless(
        "counts only with hoodie.write.rolling.metadata.keys, which is refused",
        "hoodie.write.rolling.metadata.*",
    ),
)

_REFUSED = (
    _refused(
        "no catalog is synchronised after the commit; register the table in Spark's catalog",
        "hoodie.datasource.hive_sync.enable",
        "hoodie.datasource.meta.sync.enable",
    ),
    _refused(
        "it runs no callbacks when a write commits",
        "hoodie.write.commit.callback.on",
        "hoodie.client.init.callback.classes",
    ),
    _refused(
        "nothing validates a commit beyond drawstring's own checks",
        "hoodie.precommit.validators",
        "hoodie.prewrite.validators",
        "hoodie.merge.data.validation.enabled",
    ),
    _harmless("decided by hoodie.log.compaction.inline", "hoodie.log.compaction.enable"),
    _refused(
        "it does not cluster tables",
        "hoodie.clustering.inline",
        "hoodie.clustering.async.enabled",
        "hoodie.clustering.schedule.inline",
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        "hoodie.layout.optimize.enable",
    ),
    _refused("it does not clean before a write", "hoodie.prewrite.cleaner.policy"),
    _refused("it does not drop partitions that have expired", "hoodie.partition.ttl.inline"),
    _refused(
        "it has no client for Hudi's table service manager or metaserver",
        "hoodie.table.service.manager.enabled",
        "hoodie.metadata.table.service.manager.enabled",
        "hoodie.metaserver.enabled",
    ),
    _refused(
        "it reports no metrics to other systems; the result of a write has its counts", "hoodie.metrics.on"
    ),
    _refused(
        "there is no error table: a row that cannot be written fails the whole write",
        "hoodie.errortable.enable",
    ),
    _refused("it makes no bootstrapped tables", "hoodie.bootstrap.base.path"),
    _refused(
        "it does not build that index",
        "hoodie.metadata.record.level.index.enable",
        "hoodie.metadata.index.expression.enable",
        "hoodie.metadata.index.expression.column",
        "hoodie.metadata.index.secondary.column",
        "hoodie.metadata.index.drop",
        "hoodie.metadata.bloom.filter.enable",
        "hoodie.datasource.write.secondarykey.column",
    ),
    _refused(
        "every partition has the same number of buckets",
        "hoodie.bucket.index.partition.expressions",
        "hoodie.bucket.index.partition.rule.type",
    ),
    _refused(
        "the metadata table is written together with each commit", "hoodie.metadata.write.concurrency.mode"
    ),
    _refused(
        "it cannot run Java classes",
        "hoodie.index.class",
        "hoodie.bulkinsert.user.defined.partitioner.class",
        "hoodie.fileid.prefix.provider.class",
        "hoodie.record.size.estimator.class",
        "hoodie.compact.merge.handle.class",
        "hoodie.compaction.plan.generator",
        "hoodie.write.concat.handle.class",
        "hoodie.write.merge.handle.class",
        "hoodie.writestatus.class",
        "hoodie.io.factory.class",
        "hoodie.storage.class",
        "hoodie.avro.write.support.class",
        "hoodie.parquet.spark.row.write.support.class",
        "hoodie.parquet.write.config.injector.class",
        "hoodie.keygen.datetime.parser.class",
        "hoodie.storage.layout.partitioner.class",
        "hoodie.write.record.merge.custom.implementation.classes",
    ),
    _refused(
        "conflicts are resolved by file group",
        "hoodie.write.lock.conflict.resolution.strategy",
        accepts=(
            "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy",
            "SimpleConcurrentFileWritesConflictResolutionStrategy",
        ),
    ),
    _refused(
        "it does not support that layout of files",
        "hoodie.storage.layout.type",
        "hoodie.bulkinsert.sort.suffix.record_key",
    ),
    _refused(
        "it makes tables of version 9",
        "hoodie.table.version",
        "hoodie.table.initial.version",
        accepts=("9", "nine"),
    ),
    _refused("it writes timelines of layout 2", "hoodie.timeline.layout.version", accepts=("2",)),
    _refused(
        "it keeps the timeline where Hudi does by default",
        "hoodie.timeline.path",
        "hoodie.timeline.history.path",
    ),
    _refused(
        "it writes tables with Parquet files and Hudi's own timeline",
        "hoodie.base.file.format",
        "hoodie.table.base.file.format",
        "hoodie.table.log.file.format",
        "hoodie.table.format",
        "hoodie.table.multiple.base.file.formats.enable",
        "hoodie.partition.metafile.use.base.format",
    ),
    _refused(
        "times are stored as microseconds in UTC",
        "hoodie.parquet.outputtimestamptype",
        "hoodie.parquet.write.utc-timezone.enabled",
    ),
    _refused(
        "decimals are stored as Parquet defines them",
        "hoodie.parquet.writelegacyformat.enabled",
        accepts=("false", "auto"),
    ),
    _refused(
        "files hold the partition columns and Hudi's five columns",
        "hoodie.datasource.write.drop.partition.columns",
        "hoodie.populate.meta.fields",
    ),
    _refused(
        "timestamps are written into keys and paths as microseconds",
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
    ),
    _refused(
        "an insert keeps rows whose keys the table has",
        "hoodie.datasource.write.insert.drop.duplicates",
        "hoodie.datasource.insert.dup.policy",
        "hoodie.merge.allow.duplicate.on.inserts",
    ),
    _refused("it does not write keys of that form", "hoodie.write.complex.keygen.new.encoding"),
    _refused(
        "it does not write partition paths of that form",
        "hoodie.datasource.write.slash.separated.date.partitioning",
    ),
    _refused(
        "set hoodie.record.merge.mode instead",
        "hoodie.write.record.merge.strategy.id",
        "hoodie.record.merge.strategy.id",
    ),
    Rule(("hoodie.record.merge.property.*",), "merging takes no settings", Status.REFUSED, open=True),
    _refused(
        "records are ordered by hoodie.table.ordering.fields",
        "hoodie.payload.ordering.field",
        same_as="hoodie.datasource.write.precombine.field",
    ),
    _refused(
        "the later of two records with one ordering value wins",
        "hoodie.payload.update.on.same.ordering.field",
    ),
    _refused(
        "the rows' own columns are the schema of a write",
        "hoodie.avro.schema",
        "hoodie.write.schema",
        "hoodie.internal.schema",
        "hoodie.avro.schema.external.transformation",
    ),
    _refused(
        "a column that the rows lack stays in the table",
        "hoodie.datasource.write.schema.allow.auto.evolution.*",
    ),
    _refused(
        "set hoodie.write.set.null.for.missing.columns for columns that the rows lack",
        "hoodie.datasource.write.reconcile.schema",
    ),
    _refused(
        "it does not compute that metadata of commits",
        "hoodie.write.rolling.metadata.keys",
        "hoodie.write.track.event.time.watermark",
    ),
    _refused("it does not write the column _hoodie_operation", "hoodie.allow.operation.metadata.field"),
    _refused("a write without rows makes a commit too", "hoodie.allow.empty.commit"),
    _refused("files that are rolled back are not kept", "hoodie.rollback.instant.backup.enabled"),
)

_ELSEWHERE = (
    _elsewhere("an option of Hudi Streamer", "hoodie.streamer.*", "hoodie.deltastreamer.*"),
    _elsewhere(
        "counts only for services of a cloud, which are refused",
        "hoodie.aws.*",
        "hoodie.gcp.*",
        "hoodie.datasource.meta.sync.glue.*",
        "hoodie.meta.sync.datahub.*",
        "hoodie.write.lock.dynamodb.*",
    ),
)

RULES: tuple[Rule, ...] = (*_HONOURED, *_REFUSED, *_HARMLESS, *_ELSEWHERE)
