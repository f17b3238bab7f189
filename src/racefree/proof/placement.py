"""Whether what a kernel touches depends on where its tensors lie in memory, which is another place in every run."""

from __future__ import annotations

from racefree.graph.program import For, Op, Program, Value, accesses, walk
from racefree.proof.footprint.slicing import computed_from_addresses, needed_values

ALIGNMENT_BYTES = 16
"""Tensors start at multiples of this wherever they lie."""

_CARRIES = ("arith.addi", "arith.subi", "arith.extsi", "arith.extui", "arith.select", "tt.")
"""What only moves an address on: a pointer made of it again still goes to the same tensor."""


def depends_on_addresses(program: Program) -> bool:
    """True when an address is compared or taken apart for what decides an access, other than for alignment or equality."""
    if not computed_from_addresses(program):
        return False
    made = {r.index: s for s in walk(program.body) if isinstance(s, Op) for r in s.results}
    aligned = frozenset(index for index, op in made.items() if _looks_at_alignment(op, made))
    taken = computed_from_addresses(program, apart_from=aligned)
    needed = needed_values(program, frozenset(access.index for access in accesses(program)))
    loops = [s for s in walk(program.body) if isinstance(s, For)]
    if any(bound.index in taken for loop in loops for bound in (loop.lower, loop.upper, loop.step)):
        return True
    return any(_decides(op, taken, made) for index, op in made.items() if index in needed - aligned)


def _looks_at_alignment(op: Op, made: dict[int, Op]) -> bool:
    unit = _constant(op.operands[-1], made) if len(op.operands) == 2 else None
    if op.name in ("arith.remsi", "arith.remui"):
        return unit is not None and unit > 0 and ALIGNMENT_BYTES % unit == 0
    return op.name == "arith.andi" and unit is not None and 0 <= unit < ALIGNMENT_BYTES


def _decides(op: Op, taken: frozenset[int], made: dict[int, Op]) -> bool:
    if op.name.startswith(_CARRIES) or not any(operand.index in taken for operand in op.operands):
        return False
    asks_equality = op.name == "arith.cmpi" and op.attributes["predicate"] in ("eq", "ne")
    return not (asks_equality and all(_is_plain(operand, made) for operand in op.operands))


def _is_plain(value: Value, made: dict[int, Op]) -> bool:
    """An address as it is, or a constant: two of them are equal wherever the tensors lie, or never."""
    op = made.get(value.index)
    return op is not None and op.name in ("tt.ptr_to_int", "arith.constant")


def _constant(value: Value, made: dict[int, Op]) -> int | None:
    op = made.get(value.index)
    found = op.attributes["value"] if op is not None and op.name == "arith.constant" else None
    return found if isinstance(found, int) else None
