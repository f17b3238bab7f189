"""The output formats by name, each a module whose `render(report)` gives the text; loaded when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from racefree.report.model import Report

Render = Callable[[Report], str]

_FUNCTIONS = {
    "concise": ("concise", "render"),
    "github": ("github", "render"),
    "html": ("html", "render"),
    "json": ("json_format", "render"),
    "junit": ("junit", "render"),
    "markdown": ("markdown", "render"),
    "sarif": ("sarif", "render"),
    "sarif-github": ("sarif", "render_for_github"),
    "text": ("text", "render"),
    "trace": ("trace_events", "render"),
}

DRAWN = frozenset({"html", "trace"})
"""The formats that show pictures, which have to be taken while a launch is analysed."""

NAMES = tuple(sorted(_FUNCTIONS))


def render(name: str, report: Report) -> str:
    """The report in the named format. Raises KeyError for a name that is no format."""
    module, attribute = _FUNCTIONS[name]
    function: Render = getattr(import_module(f"racefree.report.{module}"), attribute)
    return function(report)
