"""Typed access to the fields of one decoded object, with errors that know the path and what was expected there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

Fields = Mapping[str, Any]


class Malformed(Exception):
    """A value that does not fit. Callers add their part of the path while it passes through them."""

    def __init__(self, expected: str, found: Any, *, at: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.found = found
        self.path = at

    def under(self, prefix: str) -> Malformed:
        self.path = prefix + self.path
        return self

    def __str__(self) -> str:
        text = repr(self.found)
        return f"expected {self.expected}, found {text if len(text) <= 60 else text[:57] + '...'}"


def fields(value: Any) -> Fields:
    if not isinstance(value, dict):
        raise Malformed("an object", value)
    return value


def text(owner: Fields, key: str, default: str | None = None) -> str:
    """A string; null and absent give the default, which may be left out for a required field."""
    value = owner.get(key)
    if isinstance(value, str):
        return value
    if value is None and default is not None:
        return default
    raise Malformed("a string", "nothing" if key not in owner else value, at=f".{key}")


def integer(owner: Fields, key: str, default: int | None = None) -> int:
    value = owner.get(key)
    if type(value) is int:
        return value
    if value is None and default is not None:
        return default
    raise Malformed("an integer", "nothing" if key not in owner else value, at=f".{key}")


def flag(owner: Fields, key: str, default: bool = False) -> bool:
    value = owner.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    raise Malformed("true or false", value, at=f".{key}")


def each(owner: Fields, key: str, read: Callable[[Any], T]) -> tuple[T, ...]:
    """Every element of the array at `key`; absent and null are empty."""
    value = owner.get(key)
    if value is None:
        return ()
    if type(value) is not list and type(value) is not tuple:
        raise Malformed("an array", value, at=f".{key}")
    result = []
    for position, element in enumerate(value):
        try:
            result.append(read(element))
        except Malformed as error:
            raise error.under(f".{key}[{position}]") from None
    return tuple(result)


def whole(value: Any) -> int:
    if type(value) is not int:
        raise Malformed("an integer", value)
    return value


def string(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed("a string", value)
    return value
