"""Partition paths that Apache Hudi 1.2 makes of times, by the settings of its timestamp-based key generator.

`tests/interop/test_key_generators.py` lets Hudi make them again; other tests hold drawstring's against them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Case:
    """Values of one column, as texts of a Spark type, and their paths; None for what Hudi refuses."""

    name: str
    kind: str
    values: list[str | None]
    paths: list[str] | None
    settings: dict[str, str] = field(default_factory=dict)
    hive_style: bool = False
    url_encode: bool = False

    def arrow(self) -> pa.Array:
        """The values, typed."""
        arrow, parse = _TYPES[self.kind]
        return pa.array([None if text is None else parse(text) for text in self.values], arrow)


_UTC = dt.timezone.utc
_TYPES: dict[str, tuple[pa.DataType, Callable[[str], Any]]] = {
    "smallint": (pa.int16(), int),
    "int": (pa.int32(), int),
    "bigint": (pa.int64(), int),
    "float": (pa.float32(), float),
    "double": (pa.float64(), float),
    "decimal(12,2)": (pa.decimal128(12, 2), Decimal),
    "boolean": (pa.bool_(), lambda text: text == "True"),
    "string": (pa.string(), str),
    "date": (pa.date32(), dt.date.fromisoformat),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        lambda text: dt.datetime.fromisoformat(text).replace(tzinfo=_UTC),
    ),
    "timestamp_ntz": (pa.timestamp("us"), dt.datetime.fromisoformat),
}

CASES = [
    Case(
        "unix_l",
        "bigint",
        ["1700000000", "0", "-1", None, "253402300799"],
        ["2023/11/14/22", "1970/01/01/00", "1969/12/31/23", "1970/01/01/00", "9999/12/31/23"],
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy/MM/dd/HH"},
    ),
    Case(
        "unix_i",
        "int",
        ["1700000000", "0", "-1", None],
        ["2023-11-14", "1970-01-01", "1969-12-31", "1970-01-01"],
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy-MM-dd"},
    ),
    Case(
        "unix_d",
        "double",
        ["1700000000.9", "-1.5", None, "1000000000.0"],
        ["20231114221320", "19691231235959", "19700101000001", "20010909014640"],
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyyMMddHHmmss"},
    ),
    Case(
        "unix_f",
        "float",
        ["1700000000.0", "-1.5", None],
        ["20231114221320", "19691231235959", "19700101000001"],
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyyMMddHHmmss"},
    ),
    Case(
        "unix_dec",
        "decimal(12,2)",
        ["1700000000.99", "-1.50", None],
        ["20231114221320", "19691231235959", "19700101000001"],
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyyMMddHHmmss"},
    ),
    Case(
        "unix_s",
        "string",
        ["1700000000", None],
        None,
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy"},
    ),
    Case(
        "ms_l",
        "bigint",
        ["1700000000123", "-1", None],
        ["2023-11-14 22-13-20.123", "1969-12-31 23-59-59.999", "1970-01-01 00-00-00.001"],
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd HH-mm-ss.SSS"},
    ),
    Case(
        "ms_zone",
        "bigint",
        ["1700000000123", "1710054000000", "1710057600000", "1730610000000", None],
        ["2023/11/14 17", "2024/03/10 03", "2024/03/10 04", "2024/11/03 01", "1969/12/31 19"],
        {
            "timestamp.type": "EPOCHMILLISECONDS",
            "output.dateformat": "yyyy/MM/dd HH",
            "timezone": "America/New_York",
        },
    ),
    Case(
        "ms_out_zone",
        "bigint",
        ["1700000000123", None],
        ["2023/11/15 06 +0800", "1970/01/01 08 +0800"],
        {
            "timestamp.type": "EPOCHMILLISECONDS",
            "output.dateformat": "yyyy/MM/dd HH Z",
            "output.timezone": "GMT+8:00",
        },
    ),
    Case(
        "ms_hive",
        "bigint",
        ["1700000000123", None],
        ["t=2023/11/14", "t=1970/01/01"],
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd"},
        hive_style=True,
    ),
    Case(
        "ms_url",
        "bigint",
        ["1700000000123", None],
        ["2023%2F11%2F14", "1970%2F01%2F01"],
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd"},
        url_encode=True,
    ),
    Case(
        "ms_hiveurl",
        "bigint",
        ["1700000000123", None],
        ["t=2023%2F11%2F14", "t=1970%2F01%2F01"],
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd"},
        hive_style=True,
        url_encode=True,
    ),
    Case(
        "us_l",
        "bigint",
        ["1700000000123456", "-1", "-1001", None],
        [
            "2023-11-14 22-13-20.123",
            "1970-01-01 00-00-00.000",
            "1969-12-31 23-59-59.999",
            "1970-01-01 00-00-00.000",
        ],
        {"timestamp.type": "EPOCHMICROSECONDS", "output.dateformat": "yyyy-MM-dd HH-mm-ss.SSS"},
    ),
    Case(
        "ts_ms",
        "timestamp",
        ["2024-03-05 06:07:08.123456", "1969-12-31 00:00:00", None],
        ["56145/08/30 22", "1967/04/07 00", "1970/01/01 00"],
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd HH"},
    ),
    Case(
        "ts_us",
        "timestamp",
        ["2024-03-05 06:07:08.123456", "1969-12-31 00:00:00", None],
        ["2024/03/05 06", "1969/12/31 00", "1970/01/01 00"],
        {"timestamp.type": "EPOCHMICROSECONDS", "output.dateformat": "yyyy/MM/dd HH"},
    ),
    Case(
        "ts_scalar",
        "timestamp",
        ["2024-03-05 06:07:08.123456", None],
        ["2024/03/05 06", "1970/01/01 00"],
        {
            "timestamp.type": "SCALAR",
            "timestamp.scalar.time.unit": "MICROSECONDS",
            "output.dateformat": "yyyy/MM/dd HH",
        },
    ),
    Case(
        "date_days",
        "date",
        ["2024-03-05", "1969-12-31", None],
        ["2024/03/05", "1969/12/31", "1970/01/02"],
        {"timestamp.type": "SCALAR", "timestamp.scalar.time.unit": "DAYS", "output.dateformat": "yyyy/MM/dd"},
    ),
    Case(
        "scalar_days",
        "bigint",
        ["19700", "-1", None],
        ["2023/12/09/00", "1969/12/31/00", "1970/01/02/00"],
        {
            "timestamp.type": "SCALAR",
            "timestamp.scalar.time.unit": "DAYS",
            "output.dateformat": "yyyy/MM/dd/HH",
        },
    ),
    Case(
        "scalar_hours",
        "int",
        ["19700", "-1", None],
        ["1972/03/31/20", "1969/12/31/23", "1970/01/01/01"],
        {
            "timestamp.type": "SCALAR",
            "timestamp.scalar.time.unit": "hours",
            "output.dateformat": "yyyy/MM/dd/HH",
        },
    ),
    Case(
        "scalar_def",
        "int",
        ["19700", "-1", None],
        ["1970/01/01/05", "1969/12/31/23", "1970/01/01/00"],
        {"timestamp.type": "SCALAR", "output.dateformat": "yyyy/MM/dd/HH"},
    ),
    Case(
        "ds_plain",
        "string",
        ["2024-03-05 06:07:08", "1969-12-31 23:59:59", None],
        ["2024/03/05/06", "1969/12/31/23", "1970/01/01/00"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss",
            "output.dateformat": "yyyy/MM/dd/HH",
        },
    ),
    Case(
        "ds_iso",
        "string",
        ["2024-03-05T06:07:08Z", "2024-03-05T06:07:08Z", None],
        ["2024030506", "2024030506", "1970010100"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ",
            "output.dateformat": "yyyyMMddHH",
            "output.timezone": "GMT",
        },
    ),
    Case(
        "ds_iso2",
        "string",
        ["2024-03-05T06:07:08.123+0530", "2024-03-05T06:07:08-02:00", "2024-03-05T06:07:08Z", None],
        ["2024030500", "2024030508", "2024030506", "1970010100"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ",
            "output.dateformat": "yyyyMMddHH",
            "output.timezone": "GMT",
            "input.timezone": "",
        },
    ),
    Case(
        "ds_iso_nozone",
        "string",
        ["2024-03-05T06:07:08.123+0530", "2024-03-05T06:07:08-02:00", "2024-03-05T06:07:08Z", None],
        ["2024030506", "2024030506", "2024030506", "1970010100"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd'T'HH:mm:ssZ,yyyy-MM-dd'T'HH:mm:ss.SSSZ",
            "output.dateformat": "yyyyMMddHH",
        },
    ),
    Case(
        "ds_in_out",
        "string",
        ["2024-03-05 06:07:08", "2024-07-05 06:07:08", None],
        ["20240304 16", "20240704 17", "19691231 16"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss",
            "output.dateformat": "yyyyMMdd HH",
            "input.timezone": "Asia/Kolkata",
            "output.timezone": "America/Los_Angeles",
        },
    ),
    Case(
        "ds_delim",
        "string",
        ["2024-03-05", "20240306", None],
        ["2024-03-05", "2024-03-06", "1970-01-01"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd;yyyyMMdd",
            "input.dateformat.list.delimiter.regex": ";",
            "output.dateformat": "yyyy-MM-dd",
        },
    ),
    Case(
        "ds_short",
        "string",
        ["2024-3-5", "2024-12-25", "02024-03-05", None],
        ["24-3-5", "24-12-25", "24-3-5", "70-1-1"],
        {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd", "output.dateformat": "yy-M-d"},
    ),
    Case(
        "ds_m1",
        "string",
        ["3/5/2024", "12/25/2024"],
        ["2024 Mar 05 Tue", "2024 Dec 25 Wed"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "M/d/yyyy",
            "output.dateformat": "yyyy MMM dd EEE",
        },
    ),
    Case(
        "ds_text",
        "string",
        ["Mar 5, 2024", "December 25, 2024"],
        ["2024 March 05 Tuesday 65 10 2024 AM 12 0 24", "2024 December 25 Wednesday 360 52 2024 AM 12 0 24"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "MMM d, yyyy",
            "input.dateformat.list.delimiter.regex": ";",
            "output.dateformat": "yyyy MMMM dd EEEE D w x a h K k",
        },
    ),
    Case(
        "ds_bad",
        "string",
        ["2024-03-05", "nonsense"],
        None,
        {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd", "output.dateformat": "yyyy"},
    ),
    Case(
        "ds_yy",
        "string",
        ["24-03-05", "70-03-05", "00-01-01", "99-01-01"],
        ["2024", "1970", "2000", "1999"],
        {"timestamp.type": "DATE_STRING", "input.dateformat": "yy-MM-dd", "output.dateformat": "yyyy"},
    ),
    Case(
        "ds_empty",
        "string",
        ["2024-03-05", ""],
        None,
        {"timestamp.type": "DATE_STRING", "input.dateformat": "yyyy-MM-dd", "output.dateformat": "yyyy"},
    ),
    Case(
        "mixed_s",
        "string",
        ["2024-03-05 06:07:08", None],
        ["2024/03/05/06", "1970/01/01/00"],
        {
            "timestamp.type": "MIXED",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss",
            "output.dateformat": "yyyy/MM/dd/HH",
        },
    ),
    Case(
        "mixed_l",
        "bigint",
        ["1700000000", None],
        None,
        {
            "timestamp.type": "MIXED",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss",
            "output.dateformat": "yyyy/MM/dd/HH",
        },
    ),
    Case(
        "ds_l",
        "bigint",
        ["1700000000"],
        None,
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss",
            "output.dateformat": "yyyy/MM/dd/HH",
        },
    ),
    Case(
        "gap",
        "string",
        ["2024-03-10 02:30:00"],
        None,
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss",
            "output.dateformat": "yyyy/MM/dd/HH Z",
            "timezone": "America/New_York",
        },
    ),
    Case(
        "overlap",
        "string",
        ["2024-11-03 01:30:00"],
        ["2024/11/03/01 -0400"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss",
            "output.dateformat": "yyyy/MM/dd/HH Z",
            "timezone": "America/New_York",
        },
    ),
    Case(
        "old",
        "bigint",
        ["-5000000000000", "-62135596800000", "-62135596800001", "-30610224000000"],
        ["1811-07-23 15", "0001-01-01 00", "0000-12-31 23", "1000-01-01 00"],
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd HH", "timezone": "UTC"},
    ),
    Case(
        "est",
        "bigint",
        ["1700000000000"],
        ["2023-11-14 17"],
        {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy-MM-dd HH", "timezone": "EST"},
    ),
    Case(
        "lits",
        "bigint",
        ["1700000000000"],
        ["year=2023/month=11/day=14o'clockAD 20 2 Tue"],
        {
            "timestamp.type": "EPOCHMILLISECONDS",
            "output.dateformat": "'year='yyyy'/month='MM'/day='dd'o''clock'G C e E",
            "timezone": "UTC",
        },
    ),
    Case(
        "s",
        "bigint",
        ["1700000000123"],
        ["002023-November-014-022-1-12-1230-23-2023-23-46-318-318"],
        {
            "timestamp.type": "EPOCHMILLISECONDS",
            "output.dateformat": "yyyyyy-MMMMM-ddd-HHH-S-SS-SSSS-YY-YYYY-xx-ww-D-DDD",
            "timezone": "UTC",
        },
    ),
    Case(
        "frac",
        "string",
        ["2024-03-05 06:07:08.5", "2024-03-05 06:07:08.12"],
        ["2024 06-07-08-500", "2024 06-07-08-120"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss.SSS",
            "output.dateformat": "yyyy HH-mm-ss-SSS",
            "timezone": "UTC",
        },
    ),
    Case(
        "frac6",
        "string",
        ["2024-03-05 06:07:08.123456"],
        None,
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss.SSS",
            "output.dateformat": "yyyy HH-mm-ss-SSS",
            "timezone": "UTC",
        },
    ),
    Case(
        "frac66",
        "string",
        ["2024-03-05 06:07:08.123456", "2024-03-05 06:07:08.1"],
        ["2024 06-07-08-123", "2024 06-07-08-100"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
            "output.dateformat": "yyyy HH-mm-ss-SSS",
            "timezone": "UTC",
        },
    ),
    Case(
        "adj",
        "string",
        ["20240305060708"],
        ["2024 06-07-08"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyyMMddHHmmss",
            "output.dateformat": "yyyy HH-mm-ss",
            "timezone": "UTC",
        },
    ),
    Case(
        "adjshort",
        "string",
        ["2024030506070"],
        ["2024 06-07-00"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyyMMddHHmmss",
            "output.dateformat": "yyyy HH-mm-ss",
            "timezone": "UTC",
        },
    ),
    Case(
        "long",
        "string",
        ["2024-003-005"],
        None,
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd",
            "output.dateformat": "yyyy-MM-dd",
            "timezone": "UTC",
        },
    ),
    Case(
        "neg",
        "string",
        ["-0024-03-05", "24-03-05"],
        ["-0024-03-05", "0024-03-05"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd",
            "output.dateformat": "yyyy-MM-dd",
            "timezone": "UTC",
        },
    ),
    Case(
        "ampm",
        "string",
        ["03/05/2024 12:30 PM", "03/05/2024 1:05 am"],
        ["2024 12-30", "2024 01-05"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "MM/dd/yyyy hh:mm a",
            "output.dateformat": "yyyy HH-mm",
            "timezone": "UTC",
        },
    ),
    Case(
        "case",
        "string",
        ["MAR 5 2024", "march 6 2024"],
        ["2024-03-05", "2024-03-06"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "MMM d yyyy",
            "output.dateformat": "yyyy-MM-dd",
            "timezone": "UTC",
        },
    ),
    Case(
        "litcase",
        "string",
        ["2024-03-05t06:07"],
        ["2024-03-05"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM-dd'T'HH:mm",
            "output.dateformat": "yyyy-MM-dd",
            "timezone": "UTC",
        },
    ),
    Case(
        "ymonly",
        "string",
        ["2024-03"],
        ["2024-03-01 00"],
        {
            "timestamp.type": "DATE_STRING",
            "input.dateformat": "yyyy-MM",
            "output.dateformat": "yyyy-MM-dd HH",
            "timezone": "UTC",
        },
    ),
    Case(
        "bool",
        "boolean",
        ["True"],
        None,
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy", "timezone": "UTC"},
    ),
    Case(
        "ntz",
        "timestamp_ntz",
        ["2024-03-05 06:07:08.123456"],
        ["2024-03-05 06"],
        {"timestamp.type": "EPOCHMICROSECONDS", "output.dateformat": "yyyy-MM-dd HH", "timezone": "UTC"},
    ),
    Case(
        "i16",
        "smallint",
        ["300"],
        ["1970-10-28 00"],
        {
            "timestamp.type": "SCALAR",
            "timestamp.scalar.time.unit": "DAYS",
            "output.dateformat": "yyyy-MM-dd HH",
            "timezone": "UTC",
        },
    ),
    Case(
        "big",
        "bigint",
        ["9223372036854775807"],
        ["292278994"],
        {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy", "timezone": "UTC"},
    ),
    Case("noout", "bigint", ["1700000000"], None, {"timestamp.type": "UNIX_TIMESTAMP"}),
    Case("notype", "bigint", ["1700000000"], None, {"output.dateformat": "yyyy"}),
]
