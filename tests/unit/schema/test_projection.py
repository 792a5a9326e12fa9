import json
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drawstring.errors import IncompatibleSchema
from drawstring.model.read_task import ColumnMapping
from drawstring.schema.projection import plan_projection

UTC = pa.timestamp("us", tz="UTC")


def project(values, found, wanted, mapping=None):
    """Project one column `c`, plain and as a slice of a longer array, and check both agree."""
    array = values if isinstance(values, pa.Array) else pa.array(values, found)
    plan = plan_projection(pa.schema([("c", found)]), pa.schema([("c", wanted)]), mapping=mapping)
    outcome = plan.apply(pa.record_batch([array], ["c"]))
    outcome.validate(full=True)
    padded = pa.concat_arrays([array[:1], array, array[:1]]).slice(1, len(array))
    sliced = plan.apply(pa.record_batch([padded], ["c"]))
    sliced.validate(full=True)
    assert sliced.equals(outcome) or "nan" in str(outcome.to_pydict())
    assert outcome.schema.field("c").type == wanted
    return outcome.column("c").to_pylist()


@pytest.mark.parametrize(
    ("found", "wanted", "value", "expected"),
    [
        (pa.int32(), pa.int64(), 7, 7),
        (pa.int32(), pa.float32(), 16777217, 16777216.0),
        (pa.int32(), pa.float64(), 7, 7.0),
        (pa.int32(), pa.string(), -7, "-7"),
        (pa.int32(), pa.decimal128(12, 2), 7, Decimal("7.00")),
        (pa.int32(), pa.decimal128(3, 2), 77, None),
        (pa.int64(), pa.float32(), 2**62 + 1, float(2**62)),
        (pa.int64(), pa.float64(), 2**53 + 1, float(2**53)),
        (pa.int64(), pa.string(), 2**60, str(2**60)),
        (pa.int64(), pa.decimal128(38, 18), 5, Decimal(5)),
        (pa.int64(), UTC, 1_000_000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc)),
        (pa.float32(), pa.float64(), 0.1, 0.1),
        (pa.float32(), pa.string(), 1.1e11, "1.09999997E11"),
        (pa.float32(), pa.decimal128(10, 3), 0.1, Decimal("0.100")),
        (pa.float64(), pa.string(), 2.5e7, "2.5E7"),
        (pa.float64(), pa.string(), float("nan"), "NaN"),
        (pa.float64(), pa.decimal128(6, 1), 2.25, Decimal("2.3")),
        (pa.float64(), pa.decimal128(6, 1), float("inf"), None),
        (pa.decimal128(5, 2), pa.decimal128(12, 4), Decimal("1.50"), Decimal("1.5000")),
        (pa.decimal128(5, 2), pa.string(), Decimal("1.50"), "1.50"),
        (pa.string(), pa.binary(), "é", "é".encode()),
        (pa.binary(), pa.string(), "é".encode(), "é"),
        (pa.binary(), pa.string(), b"a\xff", "a\ufffd"),
        (pa.binary(3), pa.binary(), b"abc", b"abc"),
        (pa.string(), pa.date32(), "2024-02-29", date(2024, 2, 29)),
        (pa.string(), pa.date32(), " 2024-2-9 ", date(2024, 2, 9)),
        (pa.string(), pa.date32(), "2024-02-31", None),
        (pa.string(), pa.decimal128(6, 2), " 1.005", Decimal("1.01")),
        (pa.string(), pa.decimal128(6, 2), "twelve", None),
        (pa.string(), pa.decimal128(6, 2), "99999", None),
        (pa.date32(), pa.string(), date(2024, 2, 9), "2024-02-09"),
        (
            pa.timestamp("ms", tz="UTC"),
            UTC,
            datetime(2024, 1, 1, tzinfo=timezone.utc),
            datetime(2024, 1, 1, tzinfo=timezone.utc),
        ),
        (pa.timestamp("ns"), UTC, datetime(1969, 1, 1), datetime(1969, 1, 1, tzinfo=timezone.utc)),
        (pa.large_string(), pa.string(), "x", "x"),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), "x", "x"),
        (pa.dictionary(pa.int32(), pa.string()), pa.binary(), "x", b"x"),
        (pa.null(), pa.int32(), None, None),
    ],
)
def test_a_value_is_widened_everywhere(found, wanted, value, expected):
    assert project([value, None], found, wanted) == [expected, None]
    nested_found = pa.struct([pa.field("x", found)])
    nested_wanted = pa.struct([pa.field("x", wanted)])
    assert project([{"x": value}, None], nested_found, nested_wanted) == [{"x": expected}, None]
    if pa.types.is_dictionary(found):
        return
    lists = project([[value, None], None, []], pa.list_(found), pa.list_(pa.field("element", wanted)))
    assert lists == [[expected, None], None, []]
    maps = project([[("k", value)], None, []], pa.map_(pa.string(), found), pa.map_(pa.string(), wanted))
    assert maps == [[("k", expected)], None, []]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int64(), pa.int32()),
        (pa.float64(), pa.float32()),
        (pa.string(), pa.int32()),
        (pa.decimal128(5, 2), pa.decimal128(5, 3)),
        (pa.bool_(), pa.int32()),
        (pa.struct([("a", pa.int32())]), pa.string()),
        (pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32())),
        (pa.list_(pa.int64()), pa.list_(pa.int32())),
    ],
)
def test_narrowing_is_refused_with_the_path_of_the_column(found, wanted):
    with pytest.raises(IncompatibleSchema, match=r"Column c(\.element)? is"):
        plan_projection(pa.schema([("c", found)]), pa.schema([("c", wanted)]))


def test_columns_are_added_dropped_and_reordered():
    found = pa.schema([("a", pa.int32()), ("gone", pa.string()), ("b", pa.int32())])
    wanted = pa.schema([("b", pa.int64()), ("new", pa.list_(pa.string())), ("a", pa.int32())])
    plan = plan_projection(found, wanted)
    assert plan.file_columns == ["b", "a"]
    assert plan.missing_columns == ("new",)
    assert not plan.is_identity
    assert not plan.only_selects
    batch = plan.apply(pa.record_batch([[1], ["x"], [2]], schema=found))
    assert batch.to_pylist() == [{"b": 2, "new": None, "a": 1}]


def test_names_match_exactly_first_then_ignoring_case_when_unambiguous():
    found = pa.schema([("A", pa.int32()), ("a", pa.string()), ("Other", pa.int32())])
    plan = plan_projection(found, pa.schema([("a", pa.string()), ("other", pa.int32())]))
    assert plan.file_columns == ["a", "Other"]
    assert not plan.is_identity
    ambiguous = pa.schema([("AB", pa.int32()), ("aB", pa.int32())])
    assert plan_projection(ambiguous, pa.schema([("ab", pa.int32())])).file_columns == []


def test_a_file_that_fits_needs_nothing():
    schema = pa.schema([("a", pa.int32()), ("l", pa.list_(pa.field("array", pa.int32(), nullable=False)))])
    wanted = pa.schema([("l", pa.list_(pa.field("element", pa.int32())))])
    plan = plan_projection(schema, wanted)
    assert plan.is_identity
    assert plan.apply(pa.record_batch([[1], [[1, 2]]], schema=schema)).to_pylist() == [{"l": [1, 2]}]
    lacking = plan_projection(schema, pa.schema([("a", pa.int32()), ("z", pa.int32())]))
    assert lacking.only_selects
    assert not lacking.is_identity


def test_nullability_never_stands_in_the_way():
    found = pa.struct([pa.field("x", pa.list_(pa.int32())), pa.field("m", pa.map_(pa.string(), pa.int32()))])
    item = pa.field("value", pa.int32(), nullable=False)
    wanted = pa.struct(
        [
            pa.field("x", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
            pa.field("m", pa.map_(pa.string(), item)),
        ]
    )
    assert project([{"x": [1], "m": [("k", 2)]}], found, wanted) == [{"x": [1], "m": [("k", 2)]}]


def test_struct_fields_are_added_dropped_and_a_null_struct_stays_null():
    found = pa.list_(pa.struct([("a", pa.int32()), ("gone", pa.string())]))
    wanted = pa.list_(pa.field("element", pa.struct([("new", pa.string()), ("a", pa.int64())])))
    rows = [[{"a": 1, "gone": "x"}, None], None, [], [{"a": None, "gone": None}]]
    assert project(rows, found, wanted) == [
        [{"new": None, "a": 1}, None],
        None,
        [],
        [{"new": None, "a": None}],
    ]


def test_a_mapping_renames_at_every_level():
    found = pa.list_(pa.struct([("old", pa.int32()), ("kept", pa.int32()), ("back", pa.int32())]))
    wanted = pa.list_(
        pa.field("element", pa.struct([("new", pa.int64()), ("kept", pa.int32()), ("back", pa.string())]))
    )
    mapping = [
        ColumnMapping(
            "c",
            "was_c",
            (
                ColumnMapping(
                    "element",
                    "element",
                    (ColumnMapping("new", "old"), ColumnMapping("kept", "kept"), ColumnMapping("back", None)),
                ),
            ),
        )
    ]
    file_schema = pa.schema([("was_c", found)])
    plan = plan_projection(file_schema, pa.schema([("c", wanted)]), mapping=mapping)
    assert plan.file_columns == ["was_c"]
    batch = pa.record_batch([pa.array([[{"old": 1, "kept": 2, "back": 3}]], found)], schema=file_schema)
    assert plan.apply(batch).to_pylist() == [{"c": [{"new": 1, "kept": 2, "back": None}]}]


def test_the_description_is_json_for_the_other_side():
    found = pa.schema([("a", pa.int32()), ("s", pa.struct([("x", pa.float32())]))])
    wanted = pa.schema(
        [("a", pa.int32()), ("s", pa.struct([("x", pa.float64())])), ("n", pa.decimal128(5, 2))]
    )
    described = json.loads(json.dumps(plan_projection(found, wanted).describe()))
    assert described[0] == {
        "name": "a",
        "type": "int",
        "kind": "identity",
        "source": "a",
        "source_type": "int",
    }
    assert described[1]["kind"] == "struct"
    assert described[1]["source_type"] == "struct<`x`: float>"
    assert described[1]["children"][0]["kind"] == "float_to_double"
    assert described[2] == {"name": "n", "type": "decimal(5,2)", "kind": "null"}


def test_no_columns_keep_the_number_of_rows():
    found = pa.schema([("a", pa.int32())])
    plan = plan_projection(found, pa.schema([]))
    assert plan.apply(pa.record_batch([[1, 2, 3]], schema=found)).num_rows == 3


nested_rows = st.lists(
    st.none()
    | st.lists(
        st.none()
        | st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.none() | st.text(max_size=3)}),
        max_size=4,
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(nested_rows, st.data())
def test_any_slice_of_nested_rows_projects_like_the_rows(rows, data):
    found = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))
    wanted = pa.list_(pa.field("element", pa.struct([("b", pa.string()), ("a", pa.float64())])))
    start = data.draw(st.integers(0, len(rows)))
    array = pa.array(rows, found).slice(start)
    plan = plan_projection(pa.schema([("c", found)]), pa.schema([("c", wanted)]))
    batch = plan.apply(pa.record_batch([array], ["c"]))
    batch.validate(full=True)
    assert batch.column("c").to_pylist() == rows[start:]


def test_a_decoder_may_give_another_type_than_the_schema_promised():
    plan = plan_projection(pa.schema([("c", UTC)]), pa.schema([("c", UTC)]))
    moment = datetime(2024, 1, 1, tzinfo=timezone.utc)
    batch = pa.record_batch([pa.array([moment], pa.timestamp("ms", tz="UTC"))], ["c"])
    assert plan.apply(batch).column("c").to_pylist() == [moment]
    with pytest.raises(IncompatibleSchema):
        plan.apply(pa.record_batch([pa.array([True])], ["c"]))
