"""RFC-82: the eight scenarios, and beyond them the union of compatible changes."""

from __future__ import annotations

import json
import random

import pytest
from fastavro import parse_schema

from drawstring.errors import CommitConflict, ConcurrentSchemaEvolution, InvalidOption
from drawstring.model.instant import Action, Instant, State
from drawstring.schema.avro_arrow import arrow_schema_from_avro
from drawstring.schema.avro_equality import expand, same_schema
from drawstring.schema.projection import plan_projection
from drawstring.write.schema_conflicts import (
    NOT_RESOLVED,
    STRATEGIES,
    TableSchemaChange,
    eligible,
    resolve,
    schema_at,
    strategy_named,
)


def record(*fields, name="t"):
    return {"type": "record", "name": name, "fields": list(fields)}


def optional(name, avro):
    return {"name": name, "type": ["null", avro], "default": None}


def plain(name, avro):
    return {"name": name, "type": avro}


def decimal(precision, scale):
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def outer(wrap):
    """Three different schemas whose difference lies at some place: S2 and S3 each add a column to S1."""
    x, y, z = plain("x", "int"), optional("y", "string"), optional("z", "double")
    return tuple(wrap(record(*fields, name="inner")) for fields in ((x,), (x, y), (x, z)))


SHAPES = {
    "top": outer(lambda inner: record(plain("id", "int"), *inner["fields"])),
    "struct": outer(lambda inner: record(plain("id", "int"), optional("s", inner))),
    "array": outer(
        lambda inner: record(plain("id", "int"), optional("s", {"type": "array", "items": inner}))
    ),
    "map": outer(lambda inner: record(plain("id", "int"), optional("s", {"type": "map", "values": inner}))),
}
SCENARIOS = [
    # start, now, writer, what is recorded
    (1, None, None, 1, 1),
    (2, None, 1, 1, 1),
    (3, None, 2, 3, None),
    (4, 1, 1, 1, 1),
    (5, 1, 1, 2, 2),
    (6, 1, 2, 1, 2),
    (7, 1, 2, 2, 2),
    (8, 1, 2, 3, None),
]


def decide(start, now, writer, *, strategy="simple", **instants):
    names = {"start_instant": "001" if start else None, "now_instant": "002" if now else None, **instants}
    return resolve(TableSchemaChange(start, now, **names), writer, instant="003", strategy=strategy)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("scenario", "start", "now", "writer", "recorded"), SCENARIOS)
def test_scenario(scenario, start, now, writer, recorded, shape, as_text, strategy):
    schemas = dict(enumerate(SHAPES[shape], start=1))
    given = [schemas.get(number) for number in (start, now, writer)]
    if as_text:
        given = [json.dumps(schema) if schema else None for schema in given]
    if recorded is None and strategy == "simple":
        with pytest.raises(ConcurrentSchemaEvolution) as caught:
            decide(*given)
        assert isinstance(caught.value, CommitConflict)
        assert caught.value.fields["scenario"] == scenario
        return
    resolution = decide(*given, strategy=strategy)
    assert resolution.scenario == scenario
    if recorded is not None:
        assert resolution.schema == schemas[recorded]
        assert json.loads(resolution.text) == schemas[recorded]
    else:
        text = json.dumps(resolution.schema)
        assert all(f'"{name}"' in text for name in "xyz")


@pytest.mark.parametrize("nothing", [None, ""])
def test_write_without_schema_resolves_nothing(nothing):
    one, two, _ = SHAPES["top"]
    resolution = decide(one, two, nothing)
    assert (resolution.schema, resolution.scenario, resolution.text) == (None, NOT_RESOLVED, "")


def test_null_schema_records_the_tables():
    one, two, _ = SHAPES["top"]
    assert decide(one, two, '"null"').schema == two
    assert decide(None, None, '"null"').schema is None


def test_scenario_one_is_decided_by_instants_not_by_the_create_schema():
    one, two, _ = SHAPES["top"]
    resolution = decide(two, two, one, start_instant=None, now_instant=None)
    assert (resolution.scenario, resolution.schema) == (1, one)


def test_instants_that_recorded_no_schema():
    one, two, _ = SHAPES["top"]
    assert decide(None, None, one, start_instant="001", now_instant="002").scenario == 1
    with pytest.raises(ConcurrentSchemaEvolution) as caught:
        decide(None, two, one, start_instant="001", now_instant="002")
    assert caught.value.fields["scenario"] == 3


def test_same_newest_instant_accepts_the_writer():
    one, _, three = SHAPES["top"]
    assert decide(one, one, three, start_instant="001", now_instant="001").scenario == 5
    assert decide(one, one, one, start_instant="001", now_instant="001").scenario == 4


def test_there_and_back_again_is_no_change():
    one, _, three = SHAPES["top"]
    assert decide(one, one, three, start_instant="001", now_instant="005").scenario == 5


def test_ancestor_of_the_table_schema_is_still_a_conflict():
    one, two, _ = SHAPES["top"]
    three = record(*two["fields"], optional("later", "int"))
    with pytest.raises(ConcurrentSchemaEvolution):
        decide(one, three, two)


def test_order_of_columns_and_defaults_make_another_schema():
    one, two, _ = SHAPES["top"]
    for other in (
        record(*reversed(one["fields"])),
        record(plain("id", "int") | {"default": 0}, plain("x", "int")),
    ):
        with pytest.raises(ConcurrentSchemaEvolution):
            decide(one, two, other)


def test_meta_columns_are_neither_compared_nor_recorded():
    one, two, _ = SHAPES["top"]
    meta = [optional("_hoodie_commit_time", "string"), optional("_hoodie_record_key", "string")]
    with_meta = record(*meta, *two["fields"])
    assert decide(one, with_meta, one).schema == two
    assert decide(one, with_meta, two).scenario == 7


def test_error_names_the_changes_the_instants_and_whether_to_run_again():
    one, two, three = SHAPES["struct"]
    with pytest.raises(ConcurrentSchemaEvolution) as caught:
        decide(one, two, three)
    message, fields = str(caught.value), caught.value.fields
    assert "+ s.y: string nullable" in message.partition("Changed by 002")[2].partition("Changed by this")[0]
    assert "+ s.z: double nullable" in message.partition("Changed by this write")[2]
    assert "Run it again" in message
    assert (fields["instant"], fields["other_instant"], fields["start_instant"]) == ("003", "002", "001")
    assert fields["retryable"] is True
    assert json.loads(fields["table_schema"]) == two
    assert json.loads(fields["writer_schema"]) == three
    changed = record(plain("id", "int"), optional("s", "int"))
    with pytest.raises(ConcurrentSchemaEvolution, match=r"~ s: record nullable -> int nullable") as caught:
        decide(one, two, changed)
    assert caught.value.fields["retryable"] is False
    assert "cannot succeed" in str(caught.value)


def test_unknown_strategy_is_refused():
    with pytest.raises(InvalidOption, match="simple, reconcile"):
        strategy_named("guess")


# Reconcile


def union(start, now, writer):
    resolution = decide(start, now, writer, strategy="reconcile")
    parse_schema(json.loads(resolution.text))
    found = arrow_schema_from_avro(resolution.text)
    for side in (now, writer):
        plan_projection(arrow_schema_from_avro(side), found)
    return resolution


ID, A, B = plain("id", "int"), optional("a", "int"), optional("b", "int")


@pytest.mark.parametrize(
    ("start", "now", "writer", "expected"),
    [
        # each adds another
        (
            [ID],
            [ID, optional("a", "int")],
            [ID, optional("b", "int")],
            [ID, optional("a", "int"), optional("b", "int")],
        ),
        # one promotes, one adds
        (
            [ID],
            [plain("id", "long")],
            [ID, optional("b", "int")],
            [plain("id", "long"), optional("b", "int")],
        ),
        (
            [ID],
            [ID, optional("b", "int")],
            [plain("id", "string")],
            [plain("id", "string"), optional("b", "int")],
        ),
        # both promote
        ([ID], [plain("id", "long")], [plain("id", "double")], [plain("id", "double")]),
        # both add the same, of different width
        ([ID], [ID, optional("a", "int")], [ID, optional("a", "long")], [ID, optional("a", "long")]),
        # one makes nullable
        ([ID], [optional("id", "int")], [plain("id", "long")], [optional("id", "long")]),
        # text and bytes: the table's stays
        ([ID], [ID, optional("a", "bytes")], [ID, optional("a", "string")], [ID, optional("a", "bytes")]),
        # decimals
        (
            [ID],
            [ID, optional("a", decimal(10, 2))],
            [ID, optional("a", decimal(12, 4))],
            [ID, optional("a", decimal(12, 4))],
        ),
        # an element
        (
            [plain("l", {"type": "array", "items": "int"})],
            [plain("l", {"type": "array", "items": "long"})],
            [plain("l", {"type": "array", "items": ["null", "int"]})],
            [plain("l", {"type": "array", "items": ["null", "long"]})],
        ),
        # no schema at start
        (
            None,
            [ID, optional("a", "int")],
            [ID, optional("b", "int")],
            [ID, optional("a", "int"), optional("b", "int")],
        ),
    ],
)
def test_union_of_compatible_changes(start, now, writer, expected):
    resolution = union(record(*start) if start else None, record(*now), record(*writer))
    assert same_schema(resolution.schema, record(*expected))
    assert resolution.scenario == (8 if start else 3)


@pytest.mark.parametrize(
    ("start", "now", "writer", "why"),
    [
        (
            [ID],
            [ID, plain("a", "int")],
            [ID, optional("b", "int")],
            "a cannot be reconciled.*may not be null",
        ),
        (
            [ID],
            [ID, optional("a", "int")],
            [ID, plain("b", "int")],
            "b cannot be reconciled.*may not be null",
        ),
        (
            [ID],
            [ID, optional("a", "int")],
            [ID, optional("a", "boolean")],
            "int in the table and boolean in the write",
        ),
        (
            [ID, optional("a", "int")],
            [ID],
            [ID, optional("a", "int"), optional("b", "int")],
            "another commit dropped it",
        ),
        (
            [ID, optional("a", "int")],
            [ID, optional("a", "int"), optional("b", "int")],
            [ID, optional("c", "int")],
            "the writer dropped it",
        ),
        (
            [ID],
            [ID, optional("a", decimal(10, 2))],
            [ID, optional("a", decimal(9, 4))],
            "decimal",
        ),
        (
            [ID],
            [ID, optional("a", {"type": "long", "logicalType": "timestamp-millis"})],
            [ID, optional("a", {"type": "long", "logicalType": "timestamp-micros"})],
            "timestamp-millis in the table and timestamp-micros in the write",
        ),
    ],
)
def test_incompatible_changes_stay_a_conflict_and_say_why(start, now, writer, why):
    with pytest.raises(ConcurrentSchemaEvolution, match=rf"(?s){why}"):
        decide(record(*start), record(*now), record(*writer), strategy="reconcile")


def test_union_names_no_type_twice():
    now = record(ID, optional("a", record(optional("x", "int"), name="same")))
    writer = record(
        ID,
        optional("b", record(optional("y", "int"), name="same")),
        optional("c", record(optional("x", "int"), name="same2")),
        optional("d", "same2"),
    )
    schema = union(record(ID), now, writer).schema
    assert [f["name"] for f in expand(schema)["fields"]] == ["id", "a", "b", "c", "d"]


# Which instants count


def instant(time, action, completed=None, state=State.COMPLETED):
    return Instant(time, action, state, completed if state is State.COMPLETED else None)


TIMELINE = [
    instant("01", Action.COMMIT, "09"),
    instant("02", Action.DELTACOMMIT, "03"),
    instant("04", Action.REPLACECOMMIT, "05"),
    instant("06", Action.REPLACECOMMIT, "07"),
    instant("08", Action.CLEAN, "10"),
    instant("11", Action.COMMIT, state=State.INFLIGHT),
    instant("12", Action.ROLLBACK, "13"),
]


@pytest.mark.parametrize(
    ("table_type", "expected"), [("COPY_ON_WRITE", ["01", "04"]), ("MERGE_ON_READ", ["04", "02"])]
)
def test_instants_that_count_come_by_completion_the_newest_first(table_type, expected):
    found = eligible(TIMELINE, table_type, is_clustering=lambda i: i.requested_time == "06")
    assert [i.requested_time for i in found] == expected


def test_schema_is_that_of_the_newest_commit_that_has_one():
    found = eligible(TIMELINE, "COPY_ON_WRITE")
    schemas = {"01": "", "06": None, "04": "S4"}
    of = lambda i: schemas[i.requested_time]  # noqa: E731
    assert schema_at(found, schema_of=of) == ("01", "S4")
    assert schema_at(found[1:], schema_of=of) == ("06", "S4")
    assert schema_at([], schema_of=of, create_schema="C") == (None, "C")
    assert schema_at(found, schema_of=lambda _: None, create_schema="C") == ("01", "C")
    assert schema_at([], schema_of=of) == (None, None)


# Random schemas against a model that knows nothing of Avro

NUMBERS = ["int", "long", "float", "double"]


class Model:
    """A schema is a tuple of (name, type, nullable); a type is a word or, for a struct, such a tuple."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def fields(self, depth=0):
        names = self.random.sample("abcd", self.random.randint(1, 3))
        return tuple((name, self.type(depth), self.random.random() < 0.7) for name in names)

    def type(self, depth):
        if depth < 2 and self.random.random() < 0.2:
            return self.fields(depth + 1)
        return self.random.choice([*NUMBERS, "string", "bytes", "boolean"])

    def changed(self, fields):
        """A schema that is related to another: a column more, a column less, a wider type, another order."""
        found = list(fields)
        for _ in range(self.random.randint(1, 2)):
            kind = self.random.random()
            place = self.random.randrange(len(found))
            name, avro, nullable = found[place]
            if kind < 0.5:
                free = [n for n in "efgh" if n not in {f[0] for f in found}]
                found.append((self.random.choice(free), self.type(1), self.random.random() < 0.8))
            elif kind < 0.6 and len(found) > 1:
                del found[place]
            elif kind < 0.7:
                self.random.shuffle(found)
            elif isinstance(avro, tuple):
                found[place] = (name, self.changed(avro), nullable)
            else:
                found[place] = (name, self.type(2), nullable)
        return tuple(found)

    def triple(self):
        one = self.fields()
        two, three = self.changed(one), self.changed(one)
        pool = [one, two, three, self.fields()]
        return [
            self.random.choice([None, one, one, one]),
            self.random.choice([None, one, two, two]),
            self.random.choice(pool),
        ]

    def avro(self, fields, path="t"):
        """Avro for the schema, with all that equality must not see."""
        noise = self.random
        found = []
        for name, kind, nullable in fields:
            avro = kind if isinstance(kind, str) else self.avro(kind, f"{path}_{name}")
            if isinstance(kind, str) and noise.random() < 0.2:
                avro = {"type": avro, "note": noise.random()}
            if nullable:
                avro = ["null", avro] if noise.random() < 0.5 else [avro, "null"]
            found.append({"name": name, "type": avro, **({"doc": "d"} if noise.random() < 0.2 else {})})
        return {
            "type": "record",
            "name": f"{path}{noise.randint(0, 9)}",
            "namespace": noise.choice(["", "p"]),
            "fields": found,
        }


def expected_simple(start, now, writer):
    """The table of the RFC, row by row."""
    if start is None and now is None:
        return 1, writer
    if now is None:
        return 1, writer
    if start is None:
        return (2, writer) if now == writer else (3, None)
    if start == now == writer:
        return 4, writer
    if start == now:
        return 5, writer
    if writer == start:
        return 6, now
    return (7, writer) if writer == now else (8, None)


def expected_union(start, now, writer):
    """The union of two schemas as nested tuples; None when there is none."""
    before = {f[0] for f in start} if isinstance(start, tuple) else set()
    left, right = ({f[0]: f for f in side} for side in (now, writer))
    found = []
    for name, kind, nullable in now:
        if name not in right:
            if not nullable or name in before:
                return None
            found.append((name, kind, nullable))
            continue
        _, other, other_nullable = right[name]
        base = next((f[1] for f in start if f[0] == name), None) if start else None
        wider = expected_type(base, kind, other)
        if wider is None:
            return None
        found.append((name, wider, nullable or other_nullable))
    for name, kind, nullable in writer:
        if name not in left:
            if not nullable or name in before:
                return None
            found.append((name, kind, nullable))
    return tuple(found)


def expected_type(base, kind, other):
    if kind == other:
        return kind
    if isinstance(kind, tuple) and isinstance(other, tuple):
        return expected_union(base if isinstance(base, tuple) else None, kind, other)
    if kind in NUMBERS and other in NUMBERS:
        return NUMBERS[max(NUMBERS.index(kind), NUMBERS.index(other))]
    if {kind, other} == {"string", "bytes"}:
        return kind
    return "string" if "string" in (kind, other) and {kind, other} & set(NUMBERS) else None


def shape_of(avro):
    """The model's view of an Avro schema."""
    found = []
    for field in expand(avro)["fields"]:
        kind, nullable = field["type"], isinstance(field["type"], list)
        if nullable:
            kind = next(member for member in kind if member != "null")
        if isinstance(kind, dict):
            kind = shape_of(kind) if kind["type"] == "record" else kind["type"]
        found.append((field["name"], kind, nullable))
    return tuple(found)


def check_triples(seed, count):
    model = Model(seed)
    seen = dict.fromkeys(range(1, 9), 0)
    reconciled = 0
    for number in range(count):
        start, now, writer = model.triple()
        avro = [model.avro(side) if side is not None else None for side in (start, now, writer)]
        scenario, recorded = expected_simple(start, now, writer)
        seen[scenario] += 1
        context = (seed, number, start, now, writer)
        if scenario not in (3, 8):
            resolution = decide(*avro)
            assert (resolution.scenario, shape_of(resolution.schema)) == (scenario, recorded), context
            continue
        with pytest.raises(ConcurrentSchemaEvolution) as caught:
            decide(*avro)
        assert caught.value.fields["scenario"] == scenario, context
        assert caught.value.fields["retryable"] == (expected_union(None, now, writer) is not None), context
        both = expected_union(start, now, writer)
        reconciled += both is not None
        try:
            found = shape_of(decide(*avro, strategy="reconcile").schema)
        except ConcurrentSchemaEvolution:
            found = None
        assert found == both, context
    return seen, reconciled


def test_random_schemas_are_decided_as_the_model_decides():
    seen, reconciled = check_triples(seed=82, count=10_000)
    assert min(seen.values()) > 100, seen
    assert reconciled > 100


@pytest.mark.torture
@pytest.mark.parametrize("seed", range(10))
def test_many_random_schemas_are_decided_as_the_model_decides(seed):
    check_triples(seed, 10_000)
