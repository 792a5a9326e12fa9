"""Which Arrow batches writes ask Spark for."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from drawstring.spark.write.arrow_batches import BYTES_KEY, NO_LIMIT, ROWS_KEY, batch_settings, quick_batches


def schema(*kinds) -> StructType:
    return StructType([StructField(f"c{number}", kind) for number, kind in enumerate(kinds)])


class FakeSession:
    """The settings of a session."""

    def __init__(self, **settings: str) -> None:
        self.settings = settings
        self.conf = self

    def get(self, key: str, default: str | None) -> str | None:
        return self.settings.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value

    def unset(self, key: str) -> None:
        del self.settings[key]


def test_small_rows_are_limited_by_their_number_alone():
    numbers, texts = batch_settings(schema(LongType(), TimestampType())), batch_settings(schema(StringType()))
    assert numbers[BYTES_KEY] == texts[BYTES_KEY] == NO_LIMIT
    assert int(texts[ROWS_KEY]) < int(numbers[ROWS_KEY])


def test_values_of_any_size_keep_sparks_own_limits():
    assert batch_settings(schema(LongType(), BinaryType())) == {}
    assert batch_settings(schema(ArrayType(LongType()))) == {}


def test_settings_hold_while_rows_are_written_and_no_longer():
    session = FakeSession()
    with quick_batches(session, schema(LongType())):
        assert session.settings[BYTES_KEY] == NO_LIMIT
    assert session.settings == {}


def test_what_the_user_has_chosen_stays():
    session = FakeSession(**{ROWS_KEY: "500"})
    with quick_batches(session, schema(LongType())):
        assert session.settings == {ROWS_KEY: "500"}
    assert session.settings == {ROWS_KEY: "500"}
