"""Operations that make tiles or move their elements, as substitutions of lane variables.

The lane of dimension d of a tile with extent n > 1 there is the variable `lane(d, n)`; along an extent of 1 it is 0. So a
broadcast changes nothing, and a transposition renames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from racefree.graph.program import Op
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.terms import (
    ZERO,
    Fn,
    Relation,
    Sum,
    Term,
    Var,
    VarKind,
    add,
    apply,
    both,
    choose,
    compare,
    either,
    negate,
    number,
    scale,
    variable,
)

Shape = tuple[int, ...]


def lane(dimension: int, extent: int) -> Var:
    return Var(VarKind.LANE, f"lane{dimension}of{extent}", 0, extent - 1)


def position(dimension: int, extent: int) -> Sum:
    """The lane along one dimension of a tile, as a term."""
    return variable(lane(dimension, extent)) if extent > 1 else ZERO


def _substitute(term: Term, shape: Shape, places: Sequence[Sum]) -> Term | None:
    """`term` over the lanes of a tile of `shape`, `places[d]` being the lane along d; None where it hides its lanes."""
    mapping = {lane(d, n): place for d, (n, place) in enumerate(zip(shape, places, strict=True)) if n > 1}
    if all(place == variable(var) for var, place in mapping.items()):
        return term
    if any(isinstance(leaf, Var) and leaf.kind is VarKind.CARRIED for leaf in leaves(term)):
        return None
    return Replacer(mapping.get).term(term)


def _each(places: Iterable[Term | None]) -> list[Term] | None:
    found = list(places)
    told = [term for term in found if term is not None]
    return told if len(told) == len(found) else None


def _same(op: Op, x: Sequence[Term]) -> list[Term]:
    return [x[0]]


def _broadcast(op: Op, x: Sequence[Term]) -> list[Term]:
    return [x[0]]


def _expand(op: Op, x: Sequence[Term]) -> list[Term] | None:
    axis = op.attributes["axis"]
    assert isinstance(axis, int)
    shape = op.operands[0].shape
    return _each([_substitute(x[0], shape, [position(d + (d >= axis), n) for d, n in enumerate(shape)])])


def _transpose(op: Op, x: Sequence[Term]) -> list[Term] | None:
    order = op.attributes["order"]
    assert isinstance(order, tuple)
    shape = op.operands[0].shape
    return _each([_substitute(x[0], shape, [position(order.index(d), n) for d, n in enumerate(shape)])])


def _reshape(op: Op, x: Sequence[Term]) -> list[Term] | None:
    before, after = op.operands[0].shape, op.results[0].shape
    if op.attributes.get("allow_reorder"):
        return None
    flat = ZERO
    for d, n in enumerate(after):
        flat = add((scale(flat, n), position(d, n)))
    places: list[Sum] = []
    for n in reversed(before):
        places.insert(0, apply(Fn.MOD, flat, number(n)) if len(places) < len(before) - 1 else flat)
        flat = apply(Fn.FLOOR, flat, number(n))
    return _each([_substitute(x[0], before, places)])


def _join(op: Op, x: Sequence[Term]) -> list[Term]:
    first = compare(Relation.EQ, position(len(op.operands[0].shape), 2), ZERO)
    a, b = x
    if isinstance(a, Sum) and isinstance(b, Sum):
        return [choose(first, a, b)]
    assert not isinstance(a, Sum)
    assert not isinstance(b, Sum)
    return [either(both(first, a), both(negate(first), b))]


def _split(op: Op, x: Sequence[Term]) -> list[Term] | None:
    shape = op.operands[0].shape
    kept = [position(d, n) for d, n in enumerate(shape[:-1])]
    return _each(_substitute(x[0], shape, [*kept, number(k)]) for k in range(2))


Mover = Callable[[Op, Sequence[Term]], list[Term] | None]
MOVERS: dict[str, Mover] = {
    "tt.splat": _same,
    "tt.unsplat": _same,
    "tt.broadcast": _broadcast,
    "tt.expand_dims": _expand,
    "tt.trans": _transpose,
    "tt.reshape": _reshape,
    "tt.join": _join,
    "tt.split": _split,
}
