"""The report as JSON with a schema number: everything the other formats show, and the full verdict records."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from racefree.errors import InputError
from racefree.report.model import Report, count, distinct_findings

if TYPE_CHECKING:
    from cattrs import Converter

SCHEMA = 1
KIND = "racefree-report"

T = TypeVar("T")


def render(report: Report) -> str:
    document = {
        "summary": asdict(count(report)),
        "races": [
            {"fingerprint": o.fingerprint, "rule": o.finding.rule, "subject": o.subject.name, "launches": o.launches}
            for o in distinct_findings(report)
        ],
    }
    return dumps(KIND, SCHEMA, report, **document)


def parse(text: str) -> Report:
    """A report that `render` wrote. Raises InputError for anything else, or for a newer schema number."""
    return loads(text, kind=KIND, schema=SCHEMA, into=Report)


def read(path: Path, parse: Callable[[str], T]) -> T:
    """What `parse` makes of a file. Raises InputError, with the name of the file, when it cannot be read or parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: {error}") from error
    try:
        return parse(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def dumps(kind: str, schema: int, value: Any, **beside: Any) -> str:
    """A JSON document that says what it is: its kind, its schema number, what stands `beside`, and the value."""
    document = {"kind": kind, "schema": schema, **beside, "value": _converter().unstructure(value)}
    return json.dumps(document, indent=1, default=str) + "\n"


def loads(
    text: str, *, kind: str, schema: int, into: type[T], upgrades: Mapping[int, Callable[[Any], Any]] | None = None
) -> T:
    """The value of a document that `dumps` wrote, with this schema number or an older one.

    `upgrades[n]` turns a value of schema n into one of schema n + 1; where there is none the two read alike. Raises InputError
    when the document is damaged, of another kind, or of a newer schema.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise InputError(f"this JSON document is no {kind}")
    found = document.get("schema")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise InputError(f"this {kind} is damaged: its schema number is {found!r}")
    if found > schema:
        raise InputError(
            f"this {kind} has schema {found}, and this racefree reads up to {schema}: use a newer racefree"
        )
    try:
        value = document["value"]
        for number in range(found, schema):
            value = (upgrades or {}).get(number, _as_it_is)(value)
        return _converter().structure(value, into)
    except Exception as error:  # cattrs raises a group of what it met
        raise InputError(f"this {kind} is damaged: {error}") from error


def _as_it_is(value: Any) -> Any:
    return value


@cache
def _converter() -> Converter:
    from cattrs.preconf.json import make_converter

    return make_converter()


def plain_data(value: Any) -> dict[str, Any]:
    """A dataclass of plain values as JSON-ready data; what JSON cannot hold becomes its text."""
    data: dict[str, Any] = json.loads(json.dumps(_converter().unstructure(value), default=str))
    return data


def structured(data: Any, into: type[T]) -> T:
    """The value that `plain_data` turned into `data`."""
    return _converter().structure(data, into)
