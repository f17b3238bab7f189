"""The comment `# racefree: allow[RF001] reason`, with which a source line allows races of the named rules."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

FORM = "# racefree: allow[RF001] reason"

_OURS = re.compile(r"#\s*racefree:")
_COMMENT = re.compile(r"#\s*racefree:\s*allow\s*\[(?P<rules>[^\]]*)\]\s*(?P<reason>.*)")


@dataclass(frozen=True, slots=True)
class Allowance:
    """One comment. It allows nothing while it has a `problem`."""

    line: int
    rules: tuple[str, ...]
    reason: str
    problem: str = ""


def parse(text: str, line: int, rules: Mapping[str, object]) -> Allowance | None:
    """The comment in a source line, or None when it has none; `rules` are the names there are."""
    if _OURS.search(text) is None:
        return None
    found = _COMMENT.search(text)
    if found is None:
        return Allowance(line, (), "", f"not understood; write {FORM}")
    names = tuple(part.strip().upper() for part in found["rules"].split(",") if part.strip())
    reason = found["reason"].strip()
    unknown = [name for name in names if name not in rules]
    problem = ""
    if unknown or not names:
        problem = f"{', '.join(unknown) or 'nothing'} is no rule; the rules are {', '.join(rules)}"
    elif not reason:
        problem = f"gives no reason, so it allows nothing; write {FORM}"
    return Allowance(line, names, reason, problem)


def of_statement(lines: Mapping[int, str], line: int, rules: Mapping[str, object]) -> Iterator[Allowance]:
    """The comments that speak of the statement in `line`: in that line, or in lines of nothing but comment right above."""
    number = line
    while number in lines and (number == line or lines[number].lstrip().startswith("#")):
        found = parse(lines[number], number, rules)
        if found is not None and not found.problem:
            yield found
        number -= 1


def in_functions(lines: Sequence[str], heads: Sequence[int], rules: Mapping[str, object]) -> tuple[Allowance, ...]:
    """All comments of ours inside the functions that have one of the lines `heads` in their first lines.

    `heads` may name a decorator, the `def`, or any line between them. A file that is no Python has none.
    """
    if not any(_OURS.search(line) for line in lines):
        return ()
    source = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    try:
        spans = [span for span in _functions(ast.parse(source)) if any(span[0] <= h <= span[1] for h in heads)]
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return ()
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    inside = [t for t in comments if any(first <= t.start[0] <= last for first, _head, last in spans)]
    found = [parse(token.string, token.start[0], rules) for token in inside]
    return tuple(allowance for allowance in found if allowance is not None)


def _functions(tree: ast.Module) -> Iterator[tuple[int, int, int]]:
    """(first line with decorators, last line before the body, last line) of every function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield first, max(node.lineno, node.body[0].lineno - 1), node.end_lineno or node.lineno
