"""The digits rewrite: programs that stride by the grid size, `pid + round * grid`, count cells no two of them share.

For 0 <= pid < grid and round >= 0 the number q = pid + round * grid tells pid and round apart, so where a record depends on
the two through q alone, q takes their place and every product with the grid size goes away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from racefree.proof.symbolic.records import Record
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.terms import Var, VarKind, multiply, subtract, variable
from racefree.proof.symbolic.variables import grid_size, program_id


@dataclass(frozen=True, slots=True)
class Digits:
    """A record rewritten over `number` in place of the program id along `axis` and the round of loop `loop`."""

    record: Record
    axis: int
    loop: int
    number: Var


def digits(record: Record) -> Digits | None:
    """The record over q, or None when it uses pid, round or the grid size in any other way."""
    for axis in range(3):
        for loop in record.loops:
            found = _over(record, axis, loop.iteration, loop.number)
            if found is not None:
                return found
    return None


def _over(record: Record, axis: int, round_: Var, loop: int) -> Digits | None:
    pid, grid = program_id(axis), grid_size(axis)
    strided = multiply(variable(grid), variable(round_))
    ((product, _),) = strided.parts
    if not any(product == atom for atom, _ in record.address.parts):
        return None
    number = Var(VarKind.ITERATION, f"strided{axis}by{loop}", 0)
    swap = Replacer({pid: subtract(variable(number), strided)}.get)
    changed = replace(
        record,
        address=swap.sum(record.address),
        mask=swap.condition(record.mask),
        path=swap.condition(record.path),
        loops=tuple(replace(other, runs=swap.condition(other.runs)) for other in record.loops),
        obligations=frozenset(
            replace(o, value=swap.sum(o.value), guard=swap.condition(o.guard)) for o in record.obligations
        ),
    )
    essential = (changed.address, changed.mask, changed.path)
    if any(leaf in (pid, round_) for leaf in leaves(*essential)):
        return None
    kept = frozenset(
        o for o in changed.obligations if not any(leaf in (pid, round_) for leaf in leaves(o.value, o.guard))
    )
    return Digits(replace(changed, obligations=kept), axis, loop, number)
