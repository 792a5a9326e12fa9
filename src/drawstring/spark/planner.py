"""The object that the bridge calls: it passes each kind of request to its handler."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from drawstring.errors import BridgeError
from drawstring.spark import wire
from drawstring.spark.catalog import CATALOG_HANDLERS
from drawstring.spark.read.changelogs import CHANGELOG_HANDLERS
from drawstring.spark.read.reads import READ_HANDLERS
from drawstring.spark.read.streams import STREAM_HANDLERS
from drawstring.spark.write.statements import write

Handler = Callable[[str], str]
"""From the request's JSON to the reply's."""

_log = logging.getLogger(__name__)


class SparkPlanner:
    """Python's side of `drawstring.bridge.Planner`; `spark` is the session it was attached to last."""

    def __init__(self) -> None:
        self.spark: Any = None
        self.handlers: dict[str, Handler] = {
            **READ_HANDLERS,
            **STREAM_HANDLERS,
            **CHANGELOG_HANDLERS,
            **CATALOG_HANDLERS,
        }

    def request(self, kind: str, payload: str) -> str:
        """Answer one request; an error is an answer too, because a Python exception would lose its class."""
        try:
            return self._handler(kind)(payload)
        except Exception as error:
            _log.debug("request %s failed", kind, exc_info=True)
            return wire.error_reply(error)

    def write(self, data: Any, payload: str) -> str:
        """Write a JVM Dataset as `payload` describes."""
        try:
            return write(data, self.spark, payload)
        except Exception as error:
            _log.debug("write failed", exc_info=True)
            return wire.error_reply(error)

    def _handler(self, kind: str) -> Handler:
        if kind not in self.handlers:
            raise BridgeError(
                f"The planner knows no request {kind!r}; it knows {', '.join(sorted(self.handlers))}.",
                condition="UNKNOWN_REQUEST",
                kind=kind,
            )
        return self.handlers[kind]

    class Java:
        """What Py4J needs to pass this object as the trait."""

        implements = ["drawstring.bridge.Planner"]  # noqa: RUF012 - Py4J wants a plain list
