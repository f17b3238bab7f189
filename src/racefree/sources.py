"""What the file of a source position says about it: the function around it, and where in the line it is."""

from __future__ import annotations

import ast
import linecache
from dataclasses import replace
from functools import lru_cache

from racefree.access import Site


def placed(site: Site) -> Site:
    """The site, and its callers, with the function around each and the column in characters; as it was without its file.

    Compilers count columns in bytes, and name no function for code that was inlined.
    """
    callers = tuple(placed(caller) for caller in site.callers)
    line = linecache.getline(site.file, site.line)
    if not line:
        return replace(site, callers=callers)
    column = len(line.encode()[: site.column - 1].decode(errors="ignore")) + 1 if site.column else 0
    return replace(
        site, column=column, function=site.function or function_around(site.file, site.line), callers=callers
    )


def function_around(file: str, line: int) -> str:
    """The name of the innermost function whose definition covers a line; "" outside of functions or without the file."""
    around = [(last - first, name) for first, last, name in _functions(file) if first <= line <= last]
    return min(around)[1] if around else ""


@lru_cache(maxsize=64)
def _functions(file: str) -> tuple[tuple[int, int, str], ...]:
    """(first line, last line, name) of every function of a file, decorators included."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.end_lineno or node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
