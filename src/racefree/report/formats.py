"""The output formats by name, each a module whose `render(report)` gives the text; loaded when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from racefree.report.model import Report

Render = Callable[[Report], str]

_MODULES = {
    "json": "racefree.report.json_format",
    "text": "racefree.report.text",
}

NAMES = tuple(sorted(_MODULES))


def render(name: str, report: Report) -> str:
    """The report in the named format. Raises KeyError for a name that is no format."""
    function: Render = import_module(_MODULES[name]).render
    return function(report)
