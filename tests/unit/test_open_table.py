"""Opening a table without Spark: what names it, and which options count."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring import open_table
from drawstring.config.table_options import TableOptions
from drawstring.storage import open_storage
from drawstring.write.create import create_table

USE_V2, ALIAS = "hoodie.datasource.read.use.dsv2", "hoodie.datasource.read.use.v2"


@pytest.fixture
def path(tmp_path):
    create_table(open_storage(str(tmp_path)), TableOptions(name="t"), schema=pa.schema([("id", pa.int32())]))
    return tmp_path


def test_a_path_object_a_text_and_a_uri_name_the_same_table(path):
    assert [open_table(named).name for named in (path, str(path), path.as_uri())] == ["t"] * 3


def test_an_option_wins_over_the_session_whichever_of_its_names_each_uses(path):
    assert open_table(path, options={ALIAS: "false"}, session={USE_V2: "true"}).options.use_dsv2 is False
    assert open_table(path, options={USE_V2: "false"}, session={ALIAS: "true"}).options.use_dsv2 is False
    assert open_table(path, session={ALIAS: "true"}).options.use_dsv2 is True
