"""Write options of Apache Hudi that are refused, with the reason, as data."""

from __future__ import annotations

from drawstring.config.hudi_key_rule import Rule, Status, refused

REFUSED = (
    refused(
        "no catalog is synchronised after the commit; register the table in Spark's catalog",
        "hoodie.datasource.hive_sync.enable",
        "hoodie.datasource.meta.sync.enable",
    ),
    refused(
        "it runs no callbacks when a write commits",
        "hoodie.write.commit.callback.on",
        "hoodie.client.init.callback.classes",
    ),
    refused(
        "nothing validates a commit beyond drawstring's own checks",
        "hoodie.precommit.validators",
        "hoodie.prewrite.validators",
        "hoodie.merge.data.validation.enabled",
    ),
    refused(
        "it does not cluster tables",
        "hoodie.clustering.inline",
        "hoodie.clustering.async.enabled",
        "hoodie.clustering.schedule.inline",
        "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
        "hoodie.layout.optimize.enable",
    ),
    refused("it does not clean before a write", "hoodie.prewrite.cleaner.policy"),
    refused("it does not drop partitions that have expired", "hoodie.partition.ttl.inline"),
    refused(
        "it has no client for Hudi's table service manager or metaserver",
        "hoodie.table.service.manager.enabled",
        "hoodie.metadata.table.service.manager.enabled",
        "hoodie.metaserver.enabled",
    ),
    refused(
        "it reports no metrics to other systems; the result of a write has its counts", "hoodie.metrics.on"
    ),
    refused(
        "there is no error table: a row that cannot be written fails the whole write",
        "hoodie.errortable.enable",
    ),
    refused("it makes no bootstrapped tables", "hoodie.bootstrap.base.path"),
    refused(
        "it does not build that index",
        "hoodie.metadata.record.level.index.enable",
        "hoodie.metadata.index.expression.enable",
        "hoodie.metadata.index.expression.column",
        "hoodie.metadata.index.secondary.column",
        "hoodie.metadata.index.drop",
        "hoodie.metadata.bloom.filter.enable",
        "hoodie.datasource.write.secondarykey.column",
    ),
    refused(
        "every partition has the same number of buckets",
        "hoodie.bucket.index.partition.expressions",
        "hoodie.bucket.index.partition.rule.type",
    ),
    refused(
        "the metadata table is written together with each commit", "hoodie.metadata.write.concurrency.mode"
    ),
    refused(
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
    refused(
        "conflicts are resolved by file group",
        "hoodie.write.lock.conflict.resolution.strategy",
        accepts=(
            "org.apache.hudi.client.transaction.SimpleConcurrentFileWritesConflictResolutionStrategy",
            "SimpleConcurrentFileWritesConflictResolutionStrategy",
        ),
    ),
    refused(
        "it does not support that layout of files",
        "hoodie.storage.layout.type",
        "hoodie.bulkinsert.sort.suffix.record_key",
    ),
    refused(
        "it makes tables of version 9",
        "hoodie.table.version",
        "hoodie.table.initial.version",
        accepts=("9", "nine"),
    ),
    refused("it writes timelines of layout 2", "hoodie.timeline.layout.version", accepts=("2",)),
    refused(
        "it keeps the timeline where Hudi does by default",
        "hoodie.timeline.path",
        "hoodie.timeline.history.path",
    ),
    refused(
        "it writes tables with Parquet files and Hudi's own timeline",
        "hoodie.base.file.format",
        "hoodie.table.base.file.format",
        "hoodie.table.log.file.format",
        "hoodie.table.format",
        "hoodie.table.multiple.base.file.formats.enable",
        "hoodie.partition.metafile.use.base.format",
    ),
    refused(
        "times are stored as microseconds in UTC",
        "hoodie.parquet.outputtimestamptype",
        "hoodie.parquet.write.utc-timezone.enabled",
    ),
    refused(
        "decimals are stored as Parquet defines them",
        "hoodie.parquet.writelegacyformat.enabled",
        accepts=("false", "auto"),
    ),
    refused(
        "files hold the partition columns and Hudi's five columns",
        "hoodie.datasource.write.drop.partition.columns",
        "hoodie.populate.meta.fields",
    ),
    refused(
        "timestamps are written into keys and paths as microseconds",
        "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled",
    ),
    refused(
        "an insert keeps rows whose keys the table has",
        "hoodie.datasource.write.insert.drop.duplicates",
        "hoodie.datasource.insert.dup.policy",
        "hoodie.merge.allow.duplicate.on.inserts",
    ),
    refused("it does not write keys of that form", "hoodie.write.complex.keygen.new.encoding"),
    refused(
        "it does not write partition paths of that form",
        "hoodie.datasource.write.slash.separated.date.partitioning",
    ),
    refused(
        "set hoodie.record.merge.mode instead",
        "hoodie.write.record.merge.strategy.id",
        "hoodie.record.merge.strategy.id",
    ),
    Rule(("hoodie.record.merge.property.*",), "merging takes no settings", Status.REFUSED, open=True),
    refused(
        "records are ordered by hoodie.table.ordering.fields",
        "hoodie.payload.ordering.field",
        same_as="hoodie.datasource.write.precombine.field",
    ),
    refused(
        "the later of two records with one ordering value wins",
        "hoodie.payload.update.on.same.ordering.field",
    ),
    refused(
        "the rows' own columns are the schema of a write",
        "hoodie.avro.schema",
        "hoodie.write.schema",
        "hoodie.internal.schema",
        "hoodie.avro.schema.external.transformation",
    ),
    refused(
        "a column that the rows lack stays in the table",
        "hoodie.datasource.write.schema.allow.auto.evolution.*",
    ),
    refused(
        "set hoodie.write.set.null.for.missing.columns for columns that the rows lack",
        "hoodie.datasource.write.reconcile.schema",
    ),
    refused(
        "it does not compute that metadata of commits",
        "hoodie.write.rolling.metadata.keys",
        "hoodie.write.track.event.time.watermark",
    ),
    refused("it does not write the column _hoodie_operation", "hoodie.allow.operation.metadata.field"),
    refused("a write without rows makes a commit too", "hoodie.allow.empty.commit"),
    refused("files that are rolled back are not kept", "hoodie.rollback.instant.backup.enabled"),
)
