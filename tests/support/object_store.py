"""An S3-compatible store on loopback, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow.fs as pafs

BUCKET = "tables"


@dataclass(frozen=True)
class ObjectStore:
    """A running store; `settings` is what a reader must be told to reach it."""

    endpoint: str

    @property
    def settings(self) -> dict[str, str]:
        """The store's settings, by Hadoop's names."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.access.key": "reader",
            "fs.s3a.secret.key": "secret",
            "fs.s3a.endpoint.region": "eu-central-1",
            "fs.s3a.path.style.access": "true",
        }

    def upload(self, folder: Path, name: str) -> str:
        """Copy a folder into the store and return its URI."""
        pafs.copy_files(str(folder), f"{BUCKET}/{name}", destination_filesystem=self._filesystem())
        return f"s3a://{BUCKET}/{name}"

    def _filesystem(self) -> pafs.S3FileSystem:
        host = self.endpoint.removeprefix("http://")
        return pafs.S3FileSystem(
            access_key="reader",
            secret_key="secret",
            endpoint_override=host,
            scheme="http",
            region="eu-central-1",
            allow_bucket_creation=True,
        )


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Start a store, and stop it at the end."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    store = ObjectStore(f"http://{host}:{port}")
    try:
        store._filesystem().create_dir(BUCKET)
        yield store
    finally:
        server.stop()
