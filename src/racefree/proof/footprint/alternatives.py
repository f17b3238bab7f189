"""Which accesses of one program instance never both run: the conditions they stand under exclude each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from racefree.graph.program import Access, For, Guard, If, Op, Program, Statement, Value, While, children, walk
from racefree.proof.footprint.slicing import flows

Claim = tuple[str, int, int]
"""That a value holds, or that two values compare in one way (by index)."""

Literal = tuple[Claim, bool]
"""A claim and whether it is made or denied."""

_Made = Mapping[int, Op]

_DENIAL = {"ne": "eq", "sge": "slt", "sgt": "sle", "uge": "ult", "ugt": "ule"}


def alternatives(program: Program) -> frozenset[tuple[int, int]]:
    """Pairs of accesses (by index, both ways round) of which one instance carries out one at most.

    A condition that may change from round to round of a loop is left out.
    """
    made = {result.index: op for op in walk(program.body) if isinstance(op, Op) for result in op.results}
    under: dict[frozenset[Literal], list[int]] = defaultdict(list)
    for access, literals in _conditions(program.body, frozenset(), made, _changing(program)):
        under[literals].append(access.index)
    return frozenset(
        (one, other)
        for first, these in under.items()
        for second, those in under.items()
        if any((claim, not made_there) in second for claim, made_there in first)
        for one in these
        for other in those
    )


def _changing(program: Program) -> frozenset[int]:
    """The values (by index) that may be another in each round of a loop."""
    changing: set[int] = set()
    for statement in walk(tuple(s for s in walk(program.body) if isinstance(s, For | While))):
        pure = isinstance(statement, Op) and not any(o.index in changing for o in statement.operands)
        if not pure:
            changing.update(result.index for result, _ in flows(statement))
    return frozenset(changing)


def _conditions(
    body: tuple[Statement, ...], around: frozenset[Literal], made: _Made, changing: frozenset[int]
) -> Iterator[tuple[Access, frozenset[Literal]]]:
    for statement in body:
        match statement:
            case Access():
                yield statement, around
            case Guard(condition) | If(condition) if condition.index not in changing:
                for nested, holds in zip(children(statement), (True, False), strict=False):
                    inner = around.union(_literals(condition, made, holds=holds))
                    yield from _conditions(nested, inner, made, changing)
            case _:
                for nested in children(statement):
                    yield from _conditions(nested, around, made, changing)


def _literals(condition: Value, made: _Made, *, holds: bool) -> Iterator[Literal]:
    """What is known where a condition holds, or where it does not."""
    yield ("holds", condition.index, condition.index), holds
    match made.get(condition.index):
        case Op("arith.xori", _, (one, other)) if _is_true(other, made):
            yield from _literals(one, made, holds=not holds)
        case Op("arith.andi", _, operands) if holds:
            for operand in operands:
                yield from _literals(operand, made, holds=True)
        case Op("arith.ori", _, operands) if not holds:
            for operand in operands:
                yield from _literals(operand, made, holds=False)
        case Op("arith.cmpi", _, (left, right), attributes):
            predicate = str(attributes["predicate"])
            denied = predicate in _DENIAL
            yield (_DENIAL.get(predicate, predicate), left.index, right.index), holds != denied
        case _:
            pass


def _is_true(value: Value, made: _Made) -> bool:
    op = made.get(value.index)
    return op is not None and op.name == "arith.constant" and op.attributes["value"] == 1
