"""The rows of one write on their way to files: keys, index, file groups, tasks, and what the commit will say."""

from __future__ import annotations

from dataclasses import replace

from drawstring.config.index_options import BUCKET
from drawstring.config.write_options import DELETE, INSERT_OVERWRITE_TABLE, UPSERT
from drawstring.errors import InvalidInput
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import FileSlice
from drawstring.planning.snapshot import TaskFacts
from drawstring.planning.table_schemas import TableSchemas
from drawstring.planning.table_state import TableState
from drawstring.schema.meta_columns import prepend_meta_columns
from drawstring.write.assignment import Assignment, Layout, Way, assign, assign_buckets
from drawstring.write.base_files import WriteContext
from drawstring.write.bucket_index import bucket_places, bucket_rule, check_buckets
from drawstring.write.change_files import capture_mode
from drawstring.write.choose_index import look_up
from drawstring.write.conflicts import clustered_groups
from drawstring.write.executor import Counts, Executor
from drawstring.write.index import LookUp
from drawstring.write.key_generator import check_partition_path
from drawstring.write.merge_group import MergeRules
from drawstring.write.partition_names import warn_of_similar_paths
from drawstring.write.plan import OVERWRITES, WritePlan
from drawstring.write.sink_batches import recorded_with
from drawstring.write.steps import step
from drawstring.write.support import refuse_buckets, refuse_skeletons
from drawstring.write.table_facts import average_record_size, visible_slices
from drawstring.write.transaction import Transaction
from drawstring.write.write_set import WriteSet, appended_groups, existing_groups, groups_of, replaced_groups


class RowWrite:
    """The rows of one transaction on their way to files."""

    def __init__(self, rows: Executor, plan: WritePlan, transaction: Transaction) -> None:
        self._rows, self._plan, self._state = rows, plan, transaction.state
        self._searched: frozenset[str] = frozenset()
        self._context = WriteContext(
            storage=transaction.state.storage,
            requested_time=transaction.requested_time,
            schema=prepend_meta_columns(plan.table_schema),
            files=plan.options.files,
            key_fields=plan.rule.key_fields,
            avro_schema=plan.log_schema,
            assigned_columns=plan.assigned_columns,
            change_capture=capture_mode(transaction.state.config),
        )

    def run(self) -> tuple[CommitMetadata, WriteSet]:
        """Write the files; return what the commit will say, and what the write touched."""
        operation = self._plan.operation
        with step("making keys"):
            self._rows.prepare(self._plan, self._context.requested_time)
        stats = self._write_by_group() if self._plan.goes_by_group else self._append()
        self._warn_of_similar_paths(stats)
        metadata = CommitMetadata(
            operation=operation.upper(),
            stats=tuple(stats),
            replaced=self._replaced(stats) if operation in OVERWRITES else {},
            extra={**recorded_with(self._plan.options), "schema": self._plan.avro_schema},
        )
        return metadata, self._write_set(metadata)

    def _write_set(self, metadata: CommitMetadata) -> WriteSet:
        overwrites = self._plan.operation in OVERWRITES
        partitions = (
            set(metadata.replaced) | {s.partition_path for s in metadata.stats} if overwrites else set()
        )
        index = self._plan.options.index
        return WriteSet(
            groups=existing_groups(metadata),
            partitions=frozenset(partitions),
            buckets=bucket_places(groups_of(metadata)) if index.kind == BUCKET else frozenset(),
            # A key has one bucket, in which readers merge what several writers wrote.
            checks_new_keys=self._plan.operation == UPSERT and not self._plan.is_non_blocking,
            keys_are_global=index.is_global,
            schema_at_start=self._plan.schema_at_start,
            schema_written=self._plan.avro_schema,
            appended=appended_groups(metadata),
            sink_batch=self._plan.options.sink_batch,
            non_blocking=self._plan.is_non_blocking,
            searched=self._searched,
            overwritten=frozenset(replaced_groups(metadata)),
        )

    def _append(self) -> list[WriteStat]:
        with step("writing files"):
            return self._rows.append(self._context)

    def _write_by_group(self) -> list[WriteStat]:
        by_key = self._plan.operation in (UPSERT, DELETE)
        rules = self._merge_rules(by_key=by_key)
        with step("counting rows"):
            paths = self._rows.count_rows()
        overwrites = self._plan.operation in OVERWRITES
        slices = visible_slices(self._state, () if overwrites else map(check_partition_path, paths))
        refuse_skeletons(slices)
        if by_key:
            everywhere = self._plan.options.index.is_global
            self._searched = frozenset(self._state.view(None).partitions() if everywhere else paths)
        if self._plan.options.index.kind == BUCKET:
            return self._write_buckets(slices, rules)
        refuse_buckets(slices, self._state.storage.root)
        with step("finding keys"):
            lookup = (
                look_up(self._state, self._plan, slices) if by_key else LookUp(self._state.storage, slices)
            )
            counts = self._rows.locate(lookup)
        if self._plan.operation == DELETE:
            counts = Counts(counts.updates, {})
        if self._plan.assigned_columns and counts.inserts:
            raise _partial_insert(counts)
        return self._write_counted(counts, lookup.slices, rules)

    def _write_buckets(self, slices: tuple[FileSlice, ...], rules: MergeRules) -> list[WriteStat]:
        rule = bucket_rule(self._plan.options.index, self._plan.rule.key_fields)
        check_buckets(slices, rule, self._state.storage.root)
        numbers = self._rows.count_buckets(rule)
        overwrites, deletes = self._plan.operation in OVERWRITES, self._plan.operation == DELETE
        # An overwrite writes base files, as Hudi does.
        layout = Layout.COPY_ON_WRITE if overwrites else self._plan.layout
        assignment = assign_buckets(
            numbers,
            slices,
            rule,
            layout=layout,
            only_existing=deletes,
            shared=self._plan.options.concurrency.is_non_blocking and not overwrites,
            taken=self._state.visibility(None).replaced,
        )
        return self._written(assignment, rules)

    def _write_counted(
        self, counts: Counts, slices: tuple[FileSlice, ...], rules: MergeRules
    ) -> list[WriteStat]:
        files = self._plan.options.files
        assignment = assign(
            counts.updates,
            counts.inserts,
            slices,
            files=files,
            record_size=average_record_size(self._state, at_least=max(1, files.small_file_limit)),
            layout=self._plan.layout,
            closed=clustered_groups(self._state),
        )
        return self._written(assignment, rules)

    def _written(self, assignment: Assignment, rules: MergeRules) -> list[WriteStat]:
        if not assignment.buckets:
            return []
        with step("writing files", len(assignment.buckets)):
            return self._rows.write_groups(self._context, self._with_tasks(assignment, rules), rules)

    def _with_tasks(self, assignment: Assignment, rules: MergeRules) -> Assignment:
        """Add how base files that are rewritten must be read, if the files alone do not say so."""
        schemas = TableSchemas(self._state, None)
        if schemas.history is None and rules.merge is None:
            return assignment
        facts = TaskFacts(self._state, schemas)
        buckets = [
            replace(b, reads=facts.task(b.slice)) if b.way is Way.REWRITE and b.slice else b
            for b in assignment.buckets
        ]
        return replace(assignment, buckets=tuple(buckets))

    def _merge_rules(self, *, by_key: bool) -> MergeRules:
        options = self._plan.options
        combine = options.combine_before_upsert if by_key else options.combine_before_insert
        merge = self._plan.merge if self._plan.merge.partial_update_mode else None
        return MergeRules(by_key, combine, self._plan.ordering, merge)

    def _replaced(self, stats: list[WriteStat]) -> dict[str, tuple[str, ...]]:
        operation, options = self._plan.operation, self._plan.options
        whole = operation == INSERT_OVERWRITE_TABLE or options.overwrite_mode == "STATIC"
        touched = {stat.partition_path for stat in stats} | set(options.static_partitions)
        if whole and not options.static_partitions:
            touched = set(self._state.view(None).partitions())
        self._searched = frozenset(touched)
        return groups_in(self._state, sorted(touched))

    def _warn_of_similar_paths(self, stats: list[WriteStat]) -> None:
        view = self._state.view(None)
        new = {stat.partition_path for stat in stats}
        if any(not view.slices(path) for path in new):
            warn_of_similar_paths(self._state.storage.root, new, view.partitions())


def groups_in(state: TableState, partitions: list[str]) -> dict[str, tuple[str, ...]]:
    """The file groups of each partition that has some, by their ids."""
    view = state.view(None)
    found = {path: tuple(s.group.file_id for s in view.slices(path)) for path in partitions}
    return {path: ids for path, ids in found.items() if ids}


def _partial_insert(counts: Counts) -> InvalidInput:
    count = sum(counts.inserts.values())
    return InvalidInput(
        f"A partial update has {count} rows whose keys are not in the table, so their other columns are "
        "unknown. Leave these rows out, or upsert them with all columns. Nothing was written.",
        condition="PARTIAL_UPDATE_OF_NEW_KEYS",
        rows=count,
    )
