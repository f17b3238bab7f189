"""Linear consequences of equations with products: in `S*a + b = 0`, a and b are 0, or b is at least as large as S.

This is delinearisation: for addresses `S*row + column` of two executions, `S*(row - row') + (column - column') = 0` means equal
rows and equal columns where masks keep the columns below S. Nothing is assumed: the case that they are not stays in the set,
and is empty by itself where it cannot happen.
"""

from __future__ import annotations

from collections.abc import Iterable
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


def linearised(condition: Condition, bounder: Bounder) -> Condition:
    """A condition that follows from the given one, with every equation over products split into linear cases."""
    match condition:
        case Both():
            return both(linearised(condition.left, bounder), linearised(condition.right, bounder))
        case Either():
            return either(linearised(condition.left, bounder), linearised(condition.right, bounder))
        case Compare(relation=Relation.EQ):
            polynomial = _polynomial(subtract(condition.left, condition.right))
            return condition if _is_linear(polynomial) else _split(polynomial, bounder)
        case _:
            return condition


def _split(equation: Polynomial, bounder: Bounder) -> Condition:
    """What follows from `equation = 0`; TRUE when no factor is found that leaves a linear rest."""
    for pivot in _pivots(equation):
        inside, rest = _divided(equation, pivot)
        if not _is_linear(rest):
            continue
        step = gcd(*inside.values())
        quotient = {product: factor // step for product, factor in inside.items()}
        size, b = scale(_term({pivot: 1}), step), _term(rest)
        zero = _zero(quotient, bounder)
        digits = both(zero, compare(Relation.EQ, b, ZERO))
        return either(digits, _far(b, size, bounder))
    return TRUE


def _zero(polynomial: Polynomial, bounder: Bounder) -> Condition:
    if _is_linear(polynomial):
        return compare(Relation.EQ, _term(polynomial), ZERO)
    return _split(polynomial, bounder)


def _far(b: Sum, size: Sum, bounder: Bounder) -> Condition:
    """`b` is at least `size` away from 0, or what is left of that for a size below 1."""
    beyond = either(compare(Relation.LE, size, b), compare(Relation.LE, b, scale(size, -1)))
    if bounder.positive(size):
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
