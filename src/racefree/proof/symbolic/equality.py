"""Whether two terms are equal, in time linear in what they share: a term may hold one part along exponentially many paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any


def same(one: object, other: object) -> bool:
    """`==` of frozen dataclasses that have this as their `__eq__`; every pair of parts is looked at once."""
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[Any, Any]] = [(one, other)]
    while waiting:
        a, b = waiting.pop()
        if a is b:
            continue
        kind: Any = a.__class__
        if isinstance(a, tuple):
            if not isinstance(b, tuple) or len(a) != len(b):
                return False
            waiting.extend(zip(a, b, strict=True))
        elif kind.__eq__ is not same:
            if a != b:
                return False
        elif kind is not b.__class__ or hash(a) != hash(b):
            return False
        elif (id(a), id(b)) not in seen:
            seen.add((id(a), id(b)))
            waiting.extend((part(a), part(b)) for part in _parts(kind))
    return True


@cache
def _parts(kind: Any) -> tuple[Callable[[Any], Any], ...]:
    return tuple(attrgetter(field.name) for field in fields(kind) if field.compare)
