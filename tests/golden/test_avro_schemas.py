"""The schemas in `formats/avsc` are those that Apache Hudi 1.x embeds in what it writes."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from typing import Any

import fastavro
import pytest

from drawstring.formats import avro_schemas
from drawstring.formats.log_blocks import BlockType, scan_log_file
from drawstring.storage.memory import MemoryStorage
from tests.golden.harness import EXTRA, TABLES

WRITTEN_BY_1_X = sorted(path for folder in (TABLES, EXTRA) for path in folder.glob("v[89]_*.zip"))


def facts(avro: Any) -> Any:
    """A schema without its documentation."""
    if isinstance(avro, dict):
        return {key: facts(value) for key, value in avro.items() if key != "doc"}
    return [facts(part) for part in avro] if isinstance(avro, list) else avro


@pytest.fixture(scope="module")
def embedded() -> dict[str, list[Any]]:
    """The schemas of all instants of all tables of versions 8 and 9, by record name."""
    found: dict[str, list[Any]] = {}
    for path in WRITTEN_BY_1_X:
        for name, content in _members(path):
            if "/timeline/" in name and content.startswith(b"Obj\x01"):
                schema = facts(json.loads(fastavro.reader(io.BytesIO(content)).metadata["avro.schema"]))
                known = found.setdefault(schema["name"], [])
                if schema not in known:
                    known.append(schema)
            elif path.name.startswith("v9") and "/metadata/files/." in name and ".log.1_" in name:
                found.setdefault("stored", []).append(_block_schema(content))
    return found


def _members(path):
    with zipfile.ZipFile(path) as outer, tarfile.open(fileobj=io.BytesIO(outer.read("table.tar"))) as table:
        for member in table:
            file = table.extractfile(member)
            if file is not None:
                yield member.name, file.read()


def _block_schema(content: bytes) -> Any:
    storage = MemoryStorage()
    storage.write("log", content)
    blocks = scan_log_file(storage, "log").blocks
    hfiles = [block for block in blocks if block.type is BlockType.HFILE_DATA]
    return facts(json.loads(hfiles[0].schema_json or "")) if hfiles else None


def _own(name: str) -> Any:
    return json.loads(avro_schemas.schema_json(name))


@pytest.mark.parametrize(
    "name",
    [
        avro_schemas.COMMIT,
        avro_schemas.REPLACE_COMMIT,
        avro_schemas.REQUESTED_REPLACE,
        avro_schemas.COMPACTION_PLAN,
        avro_schemas.CLEAN_PLAN,
        avro_schemas.CLEAN,
        avro_schemas.ROLLBACK_PLAN,
        avro_schemas.ROLLBACK,
    ],
)
def test_a_schema_is_the_one_that_hudi_embeds(embedded, name):
    assert _own(name) in embedded[name]


def test_records_of_the_metadata_table_have_the_schema_of_hudis_blocks(embedded):
    stored = [schema for schema in embedded["stored"] if schema is not None]
    assert facts(json.loads(avro_schemas.stored_metadata_schema())) in stored


@pytest.mark.parametrize("name", avro_schemas.NAMES)
def test_every_schema_can_be_parsed_and_carries_no_documentation(name):
    assert avro_schemas.parsed_schema(name)["name"].endswith(name)
    assert '"doc"' not in avro_schemas.schema_json(name)
