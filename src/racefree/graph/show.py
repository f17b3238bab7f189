"""Prints a program as indented text, one statement a line: for people who debug a rung, and for golden tests."""

from __future__ import annotations

from collections.abc import Iterator

from racefree.access import Kind, Site
from racefree.graph.program import (
    Access,
    Assume,
    Attribute,
    Barrier,
    Combiner,
    Data,
    Element,
    Float,
    For,
    Guard,
    If,
    Int,
    Op,
    Opaque,
    Program,
    Ptr,
    Statement,
    Value,
    While,
)


def show(program: Program, *, lines: bool = False) -> str:
    """The program as text. `lines` adds the source line of each statement, with the lines it was inlined through."""
    parts = [f"kernel {program.name}"]
    for parameter in program.parameters:
        part = f".{parameter.part}" if parameter.part else ""
        multiple = f" divisible by {parameter.divisibility}" if parameter.divisibility != 1 else ""
        parts.append(f"  {_typed(parameter.value)} = parameter {parameter.name}{part}{multiple}")
    parts.extend(_body(program.body, 1, lines=lines))
    return "\n".join(parts) + "\n"


def _body(body: tuple[Statement, ...], depth: int, *, lines: bool) -> Iterator[str]:
    for statement in body:
        first, *rest = _statement(statement, depth, lines=lines)
        yield "  " * depth + first + (f"  # {_place(statement.site)}" if lines else "")
        yield from rest


def _statement(statement: Statement, depth: int, *, lines: bool) -> Iterator[str]:
    """The statement's own line without indentation, then the lines of its bodies with it."""
    inner = "  " * depth
    match statement:
        case Op(name, results, operands, attributes):
            words = [*map(_name, operands), *(f"{key}={_attribute(value)}" for key, value in attributes.items())]
            yield f"{_defined(results)}{name}({', '.join(words)})"
        case Data(name, results, operands, lanewise):
            yield f"{_defined(results)}data{'' if lanewise else ' mixing'} {name}({_names(operands)})"
        case Access():
            yield _access(statement)
        case Barrier(global_read, global_write):
            spaces = [name for name, has in (("read", global_read), ("write", global_write)) if has]
            yield f"barrier {' '.join(spaces) or 'local'}"
        case Assume(condition):
            yield f"assume {_name(condition)}"
        case Guard(condition, body):
            yield f"guard {_name(condition)}:"
            yield from _body(body, depth + 1, lines=lines)
        case If(condition, then_body, then_yields, else_body, else_yields, results):
            yield f"{_defined(results)}if {_name(condition)}:"
            yield from _body(then_body, depth + 1, lines=lines)
            yield f"{inner}  yield {_names(then_yields)}".rstrip()
            if else_body or else_yields:
                yield f"{inner}else:"
                yield from _body(else_body, depth + 1, lines=lines)
                yield f"{inner}  yield {_names(else_yields)}".rstrip()
        case For():
            yield _for(statement)
            yield from _body(statement.body, depth + 1, lines=lines)
            yield f"{inner}  yield {_names(statement.yields)}".rstrip()
        case While():
            yield f"{_defined(statement.results)}while [{_bindings(statement.before_args, statement.inits)}]:"
            yield from _body(statement.before, depth + 1, lines=lines)
            yield f"{inner}  continue if {_name(statement.condition)} with {_names(statement.forwarded)}".rstrip()
            yield f"{inner}do [{', '.join(map(_typed, statement.after_args))}]:"
            yield from _body(statement.after, depth + 1, lines=lines)
            yield f"{inner}  yield {_names(statement.after_yields)}".rstrip()


def _for(loop: For) -> str:
    bounds = f"{_name(loop.lower)} to {_name(loop.upper)} step {_name(loop.step)}"
    unsigned = " unsigned" if loop.unsigned else ""
    carried = f" [{_bindings(loop.carried, loop.inits)}]" if loop.carried else ""
    return f"{_defined(loop.results)}for {_typed(loop.induction)} = {bounds}{unsigned}{carried}:"


def _access(access: Access) -> str:
    words = [access.kind.value if access.kind is not Kind.RMW else f"atomic_{access.rmw}"]
    if access.sem is not None and access.scope is not None:
        words.append(f"{access.sem.value} {access.scope.value}")
    if access.volatile:
        words.append("volatile")
    words.append(f"{access.element_bytes}B @{_name(access.pointer)}")
    if access.operands:
        words.append(f"with {_names(access.operands)}")
    if access.mask is not None:
        words.append(f"where {_name(access.mask)}")
    if access.other is not None:
        words.append(f"else {_name(access.other)}")
    results = () if access.result is None else (access.result,)
    return f"{_defined(results)}#{access.index} {' '.join(words)}"


def _bindings(arguments: tuple[Value, ...], inits: tuple[Value, ...]) -> str:
    return ", ".join(f"{_typed(value)} = {_name(init)}" for value, init in zip(arguments, inits, strict=True))


def _defined(results: tuple[Value, ...]) -> str:
    return f"{', '.join(map(_typed, results))} = " if results else ""


def _name(value: Value) -> str:
    return f"%{value.index}"


def _names(values: tuple[Value, ...]) -> str:
    return ", ".join(map(_name, values))


def _typed(value: Value) -> str:
    size = "x".join(map(str, value.shape))
    return f"%{value.index}:{size}{'x' if size else ''}{_element(value.element)}"


def _element(element: Element) -> str:
    match element:
        case Int(bits):
            return f"i{bits}"
        case Float(bits):
            return f"f{bits}"
        case Ptr(pointee_bytes):
            return f"ptr{pointee_bytes}"
        case Opaque(text):
            return f"<{text}>"


def _attribute(value: Attribute) -> str:
    if isinstance(value, Combiner):
        steps = "; ".join(line for step in value.body for line in _statement(step, 0, lines=False))
        return f"[({_names(value.arguments)}): {steps} -> {_names(value.results)}]"
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def _place(site: Site) -> str:
    return " from ".join(str(frame.line) for frame in (site, *site.callers))
