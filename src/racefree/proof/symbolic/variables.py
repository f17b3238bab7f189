"""The variables every launch has: the program id and the grid size along each axis, and where each tensor starts."""

from __future__ import annotations

from racefree.proof.symbolic.terms import Var, VarKind

GRID_MAX = 2**31 - 1
MAX_ROUNDS = 2**63
EARLIER = "before:"


def program_id(axis: int) -> Var:
    return Var(VarKind.PROGRAM, f"p{axis}", 0, GRID_MAX - 1)


def grid_size(axis: int) -> Var:
    return Var(VarKind.GRID, f"g{axis}", 1, GRID_MAX)


def base(parameter: str) -> Var:
    """The address of a pointer parameter."""
    return Var(VarKind.BASE, f"base:{parameter}")


def round_of(loop: int) -> Var:
    """Which round of a loop an execution is in, counted from 0."""
    return Var(VarKind.ITERATION, f"round{loop}", 0, MAX_ROUNDS)


def exit_of(loop: int) -> Var:
    """The round in which a loop that waits has found what it waits for."""
    return Var(VarKind.ITERATION, f"exit{loop}", 0, MAX_ROUNDS)


def earlier_than(round_: Var) -> Var:
    """Any round before one of the same loop."""
    return Var(VarKind.ITERATION, f"{EARLIER}{round_.name}", 0, round_.high)
