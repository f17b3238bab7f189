"""The output formats by name, each a module whose `render(report)` gives the text; loaded when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module

from racefree.launch import Pictures
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


def pictures(names: Collection[str]) -> Pictures:
    """Of which launches these formats need pictures; a saved report keeps those of races, to be shown as a page later."""
    if DRAWN & set(names):
        return "all"
    return "races" if "json" in names else "nothing"


def render(name: str, report: Report) -> str:
    """The report in the named format. Raises KeyError for a name that is no format."""
    module, attribute = _FUNCTIONS[name]
    function: Render = getattr(import_module(f"racefree.report.{module}"), attribute)
    return function(report)
