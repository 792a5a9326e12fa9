"""Options: key, aliases, parser, default and doc in one declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from drawstring.errors import InvalidOption

T = TypeVar("T")


@dataclass(frozen=True)
class Option(Generic[T]):
    """One option. `parse` raises ValueError for text it cannot take; `allowed` is shown to the user then.

    Example:
        >>> ENABLED = Option("hoodie.metadata.enable", parse=boolean, default=True, doc="Use it.")
        >>> ENABLED.find({"hoodie.metadata.enable": "false"})
        False
    """

    key: str
    parse: Callable[[str], T]
    default: T
    doc: str
    aliases: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    def find(self, *layers: Mapping[str, Any] | None) -> T:
        """Return the value of the first layer that sets the option, else the default.

        Layers go from the strongest to the weakest: call, session, table.
        """
        for layer in layers:
            found = self._given(layer) if layer else None
            if found is not None:
                return self.parse_value(found[1], called=found[0])
        return self.default

    def raw(self, layer: Mapping[str, Any]) -> str | None:
        """The option's text in one layer; Spark lower-cases keys, so that spelling counts as well."""
        found = self._given(layer)
        return found[1] if found is not None else None

    def _given(self, layer: Mapping[str, Any]) -> tuple[str, str] | None:
        """By which of its names one layer sets the option, and to what text."""
        for key in (self.key, *self.aliases):
            value = layer.get(key, layer.get(key.lower()))
            if value is not None:
                return key, str(value).lower() if isinstance(value, bool) else str(value)
        return None

    def contradiction(self, layer: Mapping[str, Any]) -> dict[str, str]:
        """The option under its different names, where one layer says different things by them; else nothing."""
        given = {key: str(layer[key]) for key in (self.key, *self.aliases) if layer.get(key) is not None}
        return given if len(set(given.values())) > 1 else {}

    def parse_value(self, value: Any, *, called: str | None = None) -> T:
        """Parse one value; raises `InvalidOption` that names the key as it was given, the value and what is allowed."""
        key, text = called or self.key, str(value)
        try:
            return self.parse(text)
        except ValueError as error:
            expected = f"one of {', '.join(self.allowed)}" if self.allowed else str(error)
            raise InvalidOption(
                f"Option {key} has the value {text!r}; expected {expected}.",
                condition="INVALID_OPTION_VALUE",
                key=key,
                value=text,
                allowed=list(self.allowed),
            ) from error


def lowered(layer: Mapping[str, Any] | None) -> dict[str, str]:
    """A layer by keys in lower case and with values as text: Spark and Hudi take keys in any case."""
    return {
        str(key).lower(): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in (layer or {}).items()
        if value is not None
    }


def not_supported(key: str, value: str, reason: str, *, allowed: Sequence[str] = ()) -> InvalidOption:
    """The error for a value that Hudi knows and drawstring does not support; `reason` continues the sentence."""
    one_of = "one of " if len(allowed) > 1 else ""
    instead = f" Expected {one_of}{', '.join(allowed)}." if allowed else ""
    return InvalidOption(
        f"Option {key} is {value}, which drawstring does not support: {reason}.{instead} Remove the option, or write "
        "with Apache Hudi.",
        condition="OPTION_NOT_SUPPORTED",
        key=key,
        value=value,
        reason=reason,
        allowed=list(allowed),
    )


def boolean(text: str) -> bool:
    """Parse `true` or `false` in any case."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("true or false")
    return lowered == "true"


def text(value: str) -> str:
    """Take the text as it is."""
    return value


def integer(value: str) -> int:
    """Parse a whole number."""
    try:
        return int(value.strip())
    except ValueError:
        raise ValueError("a whole number") from None


def positive(value: str) -> int:
    """Parse a whole number above 0."""
    number = integer(value)
    if number <= 0:
        raise ValueError("a whole number above 0")
    return number


def not_negative(value: str) -> int:
    """Parse a whole number, 0 or above."""
    number = integer(value)
    if number < 0:
        raise ValueError("a whole number, 0 or above")
    return number


def one_of(*allowed: str) -> Callable[[str], str]:
    """Return a parser that takes one of the words, in any case, and returns it as declared."""
    by_lower = {word.lower(): word for word in allowed}

    def parse(value: str) -> str:
        try:
            return by_lower[value.strip().lower()]
        except KeyError:
            raise ValueError(f"one of {', '.join(allowed)}") from None

    return parse


def names(value: str) -> tuple[str, ...]:
    """Parse a comma list; blanks around and empty entries are dropped."""
    return tuple(part.strip() for part in value.split(",") if part.strip())
