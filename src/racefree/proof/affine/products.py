"""Linear consequences of equations with products: in `S*a + b = 0`, a and b are 0, or b is at least as large as S.

This is delinearisation: for addresses `S*row + column` of two executions, `S*(row - row') + (column - column') = 0` means equal
rows and equal columns where masks keep the columns below S. Nothing is assumed: the case that they are not stays in the set,
and is empty by itself where it cannot happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd

from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.replacing import leaves
from racefree.proof.symbolic.terms import (
    TRUE,
    ZERO,
    Apply,
    Atom,
    Both,
    Compare,
    Condition,
    Either,
    Fn,
    Read,
    Relation,
    Sum,
    Var,
    VarKind,
    add,
    both,
    compare,
    either,
    multiply,
    number,
    scale,
    subtract,
)

Product = tuple[Atom, ...]
Polynomial = dict[Product, int]
"""Integer factors of products of atoms; the constant is that of the empty product."""

SHARED = frozenset((VarKind.GRID, VarKind.PARAMETER, VarKind.BASE))


def linearised(conditions: Sequence[Condition], bounder: Bounder) -> list[Condition]:
    """Conditions that follow from the given ones together, with every equation over products split into linear cases."""
    signs = Signs(conditions, bounder)
    return [_linearised(c, signs) for c in conditions]


def _linearised(condition: Condition, signs: Signs) -> Condition:
    match condition:
        case Both():
            return both(_linearised(condition.left, signs), _linearised(condition.right, signs))
        case Either():
            return either(_linearised(condition.left, signs), _linearised(condition.right, signs))
        case Compare(relation=Relation.EQ):
            polynomial = _polynomial(subtract(condition.left, condition.right))
            return condition if _is_linear(polynomial) else _split(polynomial, signs)
        case _:
            return condition


class Signs:
    """Which atoms are positive: by their own bounds, or because something that is never negative lies below them."""

    def __init__(self, conditions: Sequence[Condition], bounder: Bounder) -> None:
        self._bounder = bounder
        self._positive: set[Atom] = set()
        for condition in conditions:
            if isinstance(condition, Compare) and condition.relation in (Relation.LT, Relation.LE):
                self._learn(condition)

    def _learn(self, condition: Compare) -> None:
        gap = subtract(condition.right, condition.left)
        for atom, factor in gap.parts:
            if factor > 0:
                _, most = self._bounder.of(subtract(gap, Sum(0, ((atom, factor),))))
                if most is not None and most <= (0 if condition.relation is Relation.LT else -1):
                    self._positive.add(atom)

    def positive(self, product: Product) -> bool:
        return all(
            atom in self._positive or self._bounder.positive(Sum(0, ((atom, 1),))) for atom in product
        ) or _multiplied_is_one_of(product, self._positive)


def _multiplied_is_one_of(product: Product, atoms: set[Atom]) -> bool:
    term = _multiplied(product)
    return not term.constant and len(term.parts) == 1 and term.parts[0][1] == 1 and term.parts[0][0] in atoms


def _split(equation: Polynomial, signs: Signs) -> Condition:
    """What follows from `equation = 0`; TRUE when no factor is found that leaves a linear rest."""
    for pivot in _pivots(equation):
        inside, rest = _divided(equation, pivot)
        if not _is_linear(rest):
            continue
        step = gcd(*inside.values())
        quotient = {product: factor // step for product, factor in inside.items()}
        size, b = scale(_term({pivot: 1}), step), _term(rest)
        zero = _zero(quotient, signs)
        digits = both(zero, compare(Relation.EQ, b, ZERO))
        return either(digits, _far(b, size, positive=signs.positive(pivot)))
    return TRUE


def _zero(polynomial: Polynomial, signs: Signs) -> Condition:
    if _is_linear(polynomial):
        return compare(Relation.EQ, _term(polynomial), ZERO)
    return _split(polynomial, signs)


def _far(b: Sum, size: Sum, *, positive: bool) -> Condition:
    """`b` is at least `size` away from 0, or what is left of that for a size below 1."""
    beyond = either(compare(Relation.LE, size, b), compare(Relation.LE, b, scale(size, -1)))
    if positive:
        return beyond
    within = either(compare(Relation.LE, scale(size, -1), b), compare(Relation.LE, b, size))
    return either(
        both(compare(Relation.LT, ZERO, size), beyond),
        both(compare(Relation.LE, size, ZERO), within),
    )


# ---- polynomials -----------------------------------------------------------------------------------------------------


def _polynomial(term: Sum) -> Polynomial:
    out: Polynomial = {(): term.constant} if term.constant else {}
    for atom, factor in term.parts:
        product = _factors(atom)
        out[product] = out.get(product, 0) + factor
    return {product: factor for product, factor in out.items() if factor}


def _factors(atom: Atom) -> Product:
    """The atoms a product is made of, sorted."""
    if not isinstance(atom, Apply) or atom.function is not Fn.MUL:
        return (atom,)
    inner: list[Atom] = []
    for side in (atom.left, atom.right):
        if side.constant or len(side.parts) != 1 or side.parts[0][1] != 1:
            return (atom,)
        inner += _factors(side.parts[0][0])
    return tuple(sorted(inner, key=hash))


def _term(polynomial: Polynomial) -> Sum:
    return add(scale(_multiplied(product), factor) for product, factor in polynomial.items())


def _multiplied(product: Product) -> Sum:
    out = number(1)
    for atom in product:
        out = multiply(out, Sum(0, ((atom, 1),)))
    return out


def _is_linear(polynomial: Polynomial) -> bool:
    """No product has two factors, unless all are shared: that is one number then."""
    return all(len(product) < 2 or all(map(_is_shared, product)) for product in polynomial)


def _is_shared(atom: Atom) -> bool:
    """Both executions see the same value."""
    return all(
        (isinstance(leaf, Var) and leaf.kind in SHARED) or isinstance(leaf, Read)
        for leaf in leaves(Sum(0, ((atom, 1),)))
    )


def _pivots(polynomial: Polynomial) -> list[Product]:
    """The shared parts of products that have private ones too, those of fewest factors first."""
    found: set[Product] = set()
    for product in polynomial:
        shared = tuple(atom for atom in product if _is_shared(atom))
        if len(product) > 1 and len(shared) < len(product):
            found |= {shared, *((atom,) for atom in shared)}
    return sorted(found - {()}, key=lambda product: (len(product), *map(hash, product)))


def _divided(polynomial: Polynomial, pivot: Product) -> tuple[Polynomial, Polynomial]:
    """The polynomial as `pivot * first + second`."""
    inside: Polynomial = {}
    rest: Polynomial = {}
    for product, factor in polynomial.items():
        left = _without(product, pivot)
        if left is None:
            rest[product] = factor
        else:
            inside[left] = factor
    return inside, rest


def _without(product: Product, pivot: Iterable[Atom]) -> Product | None:
    left = list(product)
    for atom in pivot:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
