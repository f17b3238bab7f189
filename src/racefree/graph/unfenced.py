"""A program without its barriers: what is left of its order where a program instance spans several blocks."""

from __future__ import annotations

from dataclasses import replace

from racefree.graph.program import Barrier, Program, rebuilt, walk


def has_barriers(program: Program) -> bool:
    """Whether any statement is a barrier."""
    return any(isinstance(statement, Barrier) for statement in walk(program.body))


def unfenced(program: Program) -> Program:
    """The same program without any barrier."""
    return replace(program, body=rebuilt(program.body, lambda s: () if isinstance(s, Barrier) else (s,)))
