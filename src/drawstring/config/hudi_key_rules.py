"""What drawstring does with the write options of Apache Hudi, as data.

An option that is honoured has a typed declaration (`write_options.ALL`) and no rule, or one that says which part of
drawstring reads it. To honour a key, declare it and remove it from its rule; a test finds keys that have both, and keys
that have neither.
"""

from __future__ import annotations

from drawstring.config.hudi_key_rule import CONCERNS_READS, Rule, elsewhere, harmless, honoured
from drawstring.config.refused_keys import REFUSED

_HONOURED = (
    honoured(
        "by the lock provider",
        "hoodie.write.lock.filesystem.*",
        "hoodie.write.lock.storage.*",
    ),
    honoured("by timestamp-based and custom key generators", "hoodie.keygen.timebased.*"),
)

_HARMLESS = (
    harmless(
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
    harmless(
        "internal to Hudi",
        "_*",
        "hoodie.internal.*",
        "hoodie.bulkinsert.are.partitioner.records.sorted",
        "hoodie.bulkinsert.overwrite.operation.type",
        "hoodie.bulkinsert.schema.ddl",
        "hoodie.valid.commits.list",
    ),
    harmless(
        "counts only with hoodie.bulkinsert.user.defined.partitioner.class, which is refused",
        "hoodie.bulkinsert.user.defined.partitioner.sort.columns",
    ),
    harmless(
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
    harmless(
        "concerns reads; a table whose columns have ids is refused by name when it is written",
        "hoodie.schema.on.read.enable",
    ),
    harmless(
        "retries are those of the store's own client",
        "hoodie.filesystem.operation.retry.*",
    ),
    harmless(
        "drawstring writes only to strongly consistent stores",
        "hoodie.consistency.check.*",
        "hoodie.optimistic.consistency.guard.sleep_time_ms",
        "hoodie.fs.atomic_creation.support",
    ),
    harmless("the table is at the path of the write", "hoodie.base.path"),
    harmless("hoodie.table.name names the table", "hoodie.datasource.write.table.name"),
    harmless(
        "tunes how Hudi's cleaner runs; drawstring's comes after the write, and deletes in threads",
        "hoodie.clean.async.enabled",
        "hoodie.clean.delete.bootstrap.base.file",
        "hoodie.clean.multiple.enabled",
        "hoodie.clean.optimize.using.local.engine.context",
        "hoodie.clean.parallelism",
    ),
    harmless(
        "tunes how Hudi's archiver runs; drawstring's comes after the write, and moves all that is old enough",
        "hoodie.archive.async",
        "hoodie.archive.limit.instants",
        "hoodie.commits.archival.batch",
        "hoodie.timeline.compaction.target.file.max.bytes",
        "hoodie.timeline.manifest.retained.versions",
    ),
    harmless(
        "a service that fails after a commit never fails the write; its result and the log tell of it",
        "hoodie.fail.on.timeline.archiving",
        "hoodie.fail.writes.on.inline.table.service.exception",
        "hoodie.write.can.ignore.post.commit.failures",
    ),
    harmless(
        "how services find their work does not change what they do",
        "hoodie.table.services.incremental.enabled",
    ),
    harmless(
        "counts only with strategies of compaction that drawstring refuses",
        "hoodie.compaction.daybased.target.partitions",
        "hoodie.compaction.partition.path.regex",
    ),
    harmless(
        "counts only where clustering runs, which drawstring does not do",
        "hoodie.clustering.*",
        "hoodie.layout.optimize.*",
    ),
    harmless("counts only where partitions expire, which drawstring does not do", "hoodie.partition.ttl.*"),
    harmless(
        "counts only with hoodie.table.service.manager.enabled, which is refused",
        "hoodie.table.service.manager.*",
    ),
    harmless("counts only with hoodie.metaserver.enabled, which is refused", "hoodie.metaserver.*"),
    harmless("counts only with hoodie.errortable.enable, which is refused", "hoodie.errortable.*"),
    harmless("counts only for the operation bootstrap, which is refused", "hoodie.bootstrap.*"),
    harmless(
        "counts only with hoodie.metrics.on, which is refused",
        "hoodie.metrics.*",
        "hoodie.metricscompaction.*",
    ),
    harmless(
        "counts only where a catalog is synchronised, which is refused",
        "hoodie.datasource.hive_sync.*",
        "hoodie.datasource.meta.sync.*",
        "hoodie.datasource.meta_sync.*",
        "hoodie.meta.sync.*",
        "hoodie.meta_sync.*",
        "hoodie.datasource.partition_extractor_class",
    ),
    harmless(
        "counts only with hoodie.write.commit.callback.on, which is refused", "hoodie.write.commit.callback.*"
    ),
    harmless(
        "counts only with hoodie.precommit.validators, which is refused", "hoodie.precommit.validators.*"
    ),
    harmless(
        "how the metadata table is kept and built",
        "hoodie.metadata.*",
    ),
    harmless(
        "counts only for consistent hashing, which is refused",
        "hoodie.bucket.index.max.num.buckets",
        "hoodie.bucket.index.min.num.buckets",
        "hoodie.bucket.index.split.threshold",
        "hoodie.bucket.index.merge.threshold",
    ),
    harmless(
        "tunes look-ups of Hudi's own",
        "hoodie.bucket.index.query.pruning",
        "hoodie.bucket.index.remote.partitioner.enable",
        "hoodie.record.index.*",
    ),
    harmless(
        "counts only for a kind of index that is refused",
        "hoodie.expression.index.*",
        "hoodie.index.name",
    ),
    harmless("tunes the look-ups of Hudi's bloom index", "hoodie.bloom.index.*"),
    harmless(
        "chosen by drawstring; readers find the same rows",
        "hoodie.parquet.block.size",
        "hoodie.parquet.page.size",
        "hoodie.parquet.compression.ratio",
        "hoodie.parquet.dictionary.enabled",
        "hoodie.parquet.field_id.write.enabled",
        "hoodie.parquet.flink.rowdata.write.support.class",
    ),
    harmless(
        "counts only for other kinds of base files, which are refused",
        "hoodie.orc.*",
        "hoodie.hfile.*",
        "hoodie.lance.*",
    ),
    harmless(
        "the encoding is told from the keys that the table has",
        "hoodie.write.complex.keygen.validation.enable",
    ),
    harmless(
        "files are limited by bytes, not by records",
        "hoodie.copyonwrite.insert.auto.split",
        "hoodie.copyonwrite.insert.split.size",
        "hoodie.record.size.estimation.threshold",
        "hoodie.record.size.estimator.average.metadata.size",
    ),
    harmless("a key is deleted once, however often it is named", "hoodie.combine.before.delete"),
    harmless("every write is checked against the table's schema", "hoodie.avro.schema.validate"),
    harmless("a row that cannot be written fails the whole write", "hoodie.write.ignore.failed"),
    harmless("the default partition is written like any other", "hoodie.skip.default.partition.validation"),
    harmless(
        "files of attempts that did not win are never published",
        "hoodie.block.writes.on.speculative.execution",
        "hoodie.fail.job.on.duplicate.data.file.detection",
    ),
    harmless(
        "a conflict is found before anything is published",
        "hoodie.write.concurrency.early.*",
        "hoodie.write.concurrency.async.*",
    ),
    harmless(
        "counts only for a lock provider that is refused",
        "hoodie.write.lock.zookeeper.*",
        "hoodie.write.lock.hivemetastore.*",
        "hoodie.write.lock.heartbeat_interval_ms",
        "hoodie.write.lock.app_id",
    ),
    harmless(
        "the lock is waited for as long as hoodie.write.lock.wait_time_ms says",
        "hoodie.write.lock.num_retries",
        "hoodie.write.lock.wait_time_ms_between_retry",
        "hoodie.write.lock.max_wait_time_ms_between_retry",
        "hoodie.auto.adjust.lock.configs",
    ),
    harmless("instants are later than all that the table has", "hoodie.time.generator.*"),
    harmless("markers are direct files, which every Hudi rolls back by", "hoodie.write.markers.type"),
    harmless(
        "drawstring rolls back by markers and by what it finds",
        "hoodie.rollback.using.markers",
        "hoodie.rollback.avoid.duplicate.plan",
        "hoodie.rollback.instant.backup.dir",
    ),
    harmless(
        "no table is upgraded; a table of another version is refused by name when it is written",
        "hoodie.write.auto.upgrade",
    ),
    harmless(
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
    harmless(
        "compactions never run beside a streaming write",
        "hoodie.datasource.write.streaming.disable.compaction",
    ),
    harmless("decided by hoodie.log.compaction.inline", "hoodie.log.compaction.enable"),
    harmless("drawstring has no MERGE INTO", "hoodie.spark.sql.merge.into.partial.updates"),
    harmless(
        "counts only with hoodie.write.track.event.time.watermark, which is refused", "hoodie.payload.event.*"
    ),
    harmless(
        "counts only with hoodie.write.rolling.metadata.keys, which is refused",
        "hoodie.write.rolling.metadata.*",
    ),
)

_ELSEWHERE = (
    elsewhere("an option of Hudi Streamer", "hoodie.streamer.*", "hoodie.deltastreamer.*"),
    elsewhere(
        "counts only for services of a cloud, which are refused",
        "hoodie.aws.*",
        "hoodie.gcp.*",
        "hoodie.datasource.meta.sync.glue.*",
        "hoodie.meta.sync.datahub.*",
        "hoodie.write.lock.dynamodb.*",
    ),
)

RULES: tuple[Rule, ...] = (*_HONOURED, *REFUSED, *_HARMLESS, *_ELSEWHERE)
