"""How a table merges records, told from its properties: merge mode, payload class or strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from drawstring.config.option import names
from drawstring.model.read_task import MergeSpec

COMMIT_TIME = "COMMIT_TIME_ORDERING"
EVENT_TIME = "EVENT_TIME_ORDERING"
CUSTOM = "CUSTOM"

_STRATEGIES = {
    "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5": EVENT_TIME,
    "ce9acb64-bde0-424c-9b91-f6ebba25356d": COMMIT_TIME,
}
_DEBEZIUM = MergeSpec(
    EVENT_TIME, delete_field="_change_operation_type", delete_marker="d", deletes_unordered=True
)
_UNAVAILABLE = "__debezium_unavailable_value"

PAYLOADS: Mapping[str, MergeSpec] = {
    "DefaultHoodieRecordPayload": MergeSpec(EVENT_TIME),
    "EventTimeAvroPayload": MergeSpec(EVENT_TIME),
    "OverwriteWithLatestAvroPayload": MergeSpec(COMMIT_TIME),
    "PartialUpdateAvroPayload": MergeSpec(
        EVENT_TIME, partial_update_mode="IGNORE_DEFAULTS", meta_from_newer=True, deletes_unordered=True
    ),
    "OverwriteNonDefaultsWithLatestAvroPayload": MergeSpec(
        COMMIT_TIME, partial_update_mode="IGNORE_DEFAULTS"
    ),
    "AWSDmsAvroPayload": MergeSpec(COMMIT_TIME, delete_field="Op", delete_marker="D"),
    "PostgresDebeziumAvroPayload": replace(
        _DEBEZIUM,
        ordering_fields=("_event_lsn",),
        partial_update_mode="FILL_UNAVAILABLE",
        unavailable_value=_UNAVAILABLE,
    ),
    "MySqlDebeziumAvroPayload": replace(_DEBEZIUM, ordering_fields=("_event_bin_file", "_event_pos")),
}
"""What Hudi's own payload classes mean, by simple class name."""

_PACKAGES = (
    "org.apache.hudi.common.model.",
    "org.apache.hudi.common.model.debezium.",
    "org.apache.hudi.payload.",
)
_KNOWN_MODES = {
    "hoodie.record.merge.mode": (COMMIT_TIME, EVENT_TIME, CUSTOM),
    "hoodie.table.partial.update.mode": ("NONE", "KEEP_VALUES", "IGNORE_DEFAULTS", "FILL_UNAVAILABLE"),
}
_MERGE_PROPERTY = "hoodie.record.merge.property."


@dataclass(frozen=True)
class MergeRule:
    """What was found: a spec, or the name of a class that only the JVM could run."""

    spec: MergeSpec
    unknown: str | None = None


def merge_rule(properties: Mapping[str, str], *, version: int) -> MergeRule:
    """Tell how a table of `version` merges records.

    Version 9 trusts the merge mode; 8 trusts it unless it is CUSTOM, which stands for Hudi's older payloads
    as well; 6 knows only payload classes (its strategy id says event time even where the payload differs).
    """
    ordering = ordering_fields(properties)
    rule = (
        _unknown_setting(properties)
        or _by_mode(properties, version, ordering)
        or _by_payload(properties)
        or _by_strategy(properties, version)
    )
    spec = rule.spec if rule.spec.ordering_fields else replace(rule.spec, ordering_fields=ordering)
    if spec.mode == EVENT_TIME and not spec.ordering_fields:
        spec = replace(spec, mode=COMMIT_TIME)
    if version >= 8:
        # Seen: the Hudi that writes version 8, and what it becomes in version 9, pass late deletes over.
        spec = replace(spec, deletes_unordered=False)
    return replace(rule, spec=_with_merge_properties(spec, properties))


def ordering_fields(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The ordering fields, under any of the names they have had."""
    for key in (
        "hoodie.table.ordering.fields",
        "hoodie.table.precombine.field",
        "hoodie.datasource.write.precombine.field",
    ):
        if properties.get(key):
            return names(properties[key])
    return ()


def _unknown_setting(properties: Mapping[str, str]) -> MergeRule | None:
    """A mode that a newer Hudi knows: nothing else in the properties says what it means."""
    for key, known in _KNOWN_MODES.items():
        found = properties.get(key, "").strip().upper()
        if found and found not in known:
            return MergeRule(MergeSpec(CUSTOM), unknown=f"{key}={found}")
    return None


def _by_mode(properties: Mapping[str, str], version: int, ordering: tuple[str, ...]) -> MergeRule | None:
    mode = properties.get("hoodie.record.merge.mode", "").strip().upper()
    if version < 8:
        return None
    if mode in (COMMIT_TIME, EVENT_TIME):
        return MergeRule(MergeSpec(mode))
    if not mode and version >= 9 and not _payload_class(properties):
        return MergeRule(MergeSpec(EVENT_TIME if ordering else COMMIT_TIME))
    return None


def _by_payload(properties: Mapping[str, str]) -> MergeRule | None:
    payload = _payload_class(properties)
    if not payload:
        return None
    package, _, simple = payload.rpartition(".")
    if simple in PAYLOADS and f"{package}." in _PACKAGES:
        return MergeRule(PAYLOADS[simple])
    return MergeRule(MergeSpec(CUSTOM), unknown=payload)


def _by_strategy(properties: Mapping[str, str], version: int) -> MergeRule:
    strategy = properties.get("hoodie.record.merge.strategy.id") or properties.get(
        "hoodie.compaction.record.merger.strategy", ""
    )
    if strategy in _STRATEGIES:
        return MergeRule(MergeSpec(_STRATEGIES[strategy]))
    if strategy or properties.get("hoodie.record.merge.mode", "").upper() == CUSTOM:
        return MergeRule(MergeSpec(CUSTOM), unknown=f"merger strategy {strategy or 'without id'}")
    return MergeRule(MergeSpec(EVENT_TIME if version < 9 or ordering_fields(properties) else COMMIT_TIME))


def _payload_class(properties: Mapping[str, str]) -> str:
    for key in ("hoodie.compaction.payload.class", "hoodie.datasource.write.payload.class"):
        if properties.get(key):
            return properties[key].strip()
    return ""


def _with_merge_properties(spec: MergeSpec, properties: Mapping[str, str]) -> MergeSpec:
    def setting(name: str) -> str | None:
        return properties.get(_MERGE_PROPERTY + name) or properties.get(name) or None

    return replace(
        spec,
        partial_update_mode=properties.get("hoodie.table.partial.update.mode") or spec.partial_update_mode,
        unavailable_value=setting("hoodie.write.partial.update.unavailable.value") or spec.unavailable_value,
        delete_field=setting("hoodie.payload.delete.field") or spec.delete_field,
        delete_marker=setting("hoodie.payload.delete.marker") or spec.delete_marker,
    )
