"""Settings of stores under Hadoop's names, as Spark users write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drawstring.errors import InvalidOption

_HADOOP_PREFIX = "spark.hadoop."
_S3A = "fs.s3a."
_ARGUMENTS = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
}
_ANONYMOUS = "AnonymousAWSCredentialsProvider"


def store_settings(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of stores among others (`fs.*`), by Hadoop's names, also where Spark's prefix is before them."""
    plain = {key.removeprefix(_HADOOP_PREFIX): value for key, value in given.items()}
    return {key: value for key, value in plain.items() if key.startswith("fs.")}


def s3_arguments(options: Mapping[str, str], bucket: str = "") -> dict[str, Any]:
    """What `pyarrow.fs.S3FileSystem` is made with; `fs.s3a.bucket.NAME.*` counts before `fs.s3a.*`, as in Hadoop."""
    settings = _of_bucket(store_settings(options), bucket)
    arguments: dict[str, Any] = {to: settings[key] for key, to in _ARGUMENTS.items() if settings.get(key)}
    endpoint = settings.get("endpoint", "")
    scheme, separator, host = endpoint.rpartition("://")
    if host:
        arguments["endpoint_override"] = host.rstrip("/")
    if settings.get("connection.ssl.enabled", "").strip().lower() == "false" or scheme == "http":
        arguments["scheme"] = "http" if not separator else scheme
    if settings.get("aws.credentials.provider", "").strip().endswith(_ANONYMOUS):
        arguments["anonymous"] = True
    if ("access_key" in arguments) != ("secret_key" in arguments):
        raise InvalidOption(
            "Only one of fs.s3a.access.key and fs.s3a.secret.key is set; set both, or neither to use the "
            "environment's credentials.",
            condition="INCOMPLETE_CREDENTIALS",
        )
    return arguments


def _of_bucket(settings: Mapping[str, str], bucket: str) -> dict[str, str]:
    own = f"{_S3A}bucket.{bucket}."
    general = {key[len(_S3A) :]: value for key, value in settings.items() if key.startswith(_S3A)}
    return general | {
        key[len(own) :]: value for key, value in settings.items() if bucket and key.startswith(own)
    }
