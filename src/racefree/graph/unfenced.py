"""A program without its barriers: what is left of its order where a program instance spans several blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from racefree.graph.program import (
    Access,
    Assume,
    Barrier,
    Data,
    For,
    Guard,
    If,
    Op,
    Program,
    Statement,
    While,
    walk,
)


def has_barriers(program: Program) -> bool:
    """Whether any statement is a barrier."""
    return any(isinstance(statement, Barrier) for statement in walk(program.body))


def unfenced(program: Program) -> Program:
    """The same program without any barrier."""
    return replace(program, body=_body(program.body))


def _body(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    return tuple(_statement(s) for s in body if not isinstance(s, Barrier))


def _statement(statement: Statement) -> Statement:
    match statement:
        case Guard() | For():
            return replace(statement, body=_body(statement.body))
        case If():
            return replace(statement, then_body=_body(statement.then_body), else_body=_body(statement.else_body))
        case While():
            return replace(statement, before=_body(statement.before), after=_body(statement.after))
        case Op() | Data() | Access() | Assume() | Barrier():
            return statement
        case _:
            assert_never(statement)
