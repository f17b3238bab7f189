"""Terms as Z3 expressions, with the bounds every query assumes."""

from __future__ import annotations

from typing import Any, assert_never

import z3

from racefree.proof.smt.contents import MOST_LISTED, Contents, Table
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.terms import (
    Apply,
    Atom,
    Both,
    Choose,
    Compare,
    Condition,
    Either,
    Fn,
    FreeTruth,
    Not,
    Read,
    Relation,
    Sum,
    Truth,
    Unknown,
    Var,
)


class Encoding:
    """One fresh Z3 context and the names in it. `premises` collects the bounds of all that has been encoded.

    Unknown values are one constant per term; memory nobody writes is one function per width.
    With `contents` a read lies in its table and yields what is there, or, unless `listed`, something within its bounds.
    `inexact` becomes true when something is encoded as an unconstrained value, so that a model need not be real.
    """

    def __init__(self, contents: Contents | None = None, *, listed: bool = True) -> None:
        self.context = z3.Context()
        self._contents = contents
        self._listed = listed
        self._guards: list[Any] = []
        self.premises: list[Any] = []
        self.inexact = False
        self._bounder = Bounder()
        self._variables: dict[Var, Any] = {}
        self._unknowns: dict[object, Any] = {}
        self._memory: dict[int, Any] = {}
        self._atoms: dict[Atom, Any] = {}
        self._conditions: dict[Condition, Any] = {}

    # ---- names -------------------------------------------------------------------------------------------------------

    def variable(self, var: Var) -> Any:
        """The constant for a variable."""
        found = self._variables.get(var)
        if found is None:
            found = self._variables[var] = z3.Int(var.name, self.context)
            self._bound(found, var.low, var.high)
        return found

    def _bound(self, expression: Any, low: int | None, high: int | None) -> None:
        if low is not None:
            self.premises.append(expression >= low)
        if high is not None:
            self.premises.append(expression <= high)

    # ---- integers ----------------------------------------------------------------------------------------------------

    def sum(self, term: Sum) -> Any:
        parts = [self._scaled(self._atom(atom), factor) for atom, factor in term.parts]
        if not parts:
            return z3.IntVal(term.constant, self.context)
        total = parts[0] if len(parts) == 1 else z3.Sum(parts)
        return total + term.constant if term.constant else total

    @staticmethod
    def _scaled(expression: Any, factor: int) -> Any:
        return expression if factor == 1 else factor * expression

    def _atom(self, atom: Atom) -> Any:
        found = self._atoms.get(atom)
        if found is None:
            found = self._atoms[atom] = self._encoded(atom)
        return found

    def _encoded(self, atom: Atom) -> Any:
        match atom:
            case Var():
                return self.variable(atom)
            case Unknown():
                return self._unknown(atom, atom.low, atom.high)
            case Read():
                return self._read(atom)
            case Choose():
                held = self.condition(atom.condition)
                return z3.If(held, self._under(held, atom.then), self._under(z3.Not(held), atom.other))
            case Apply():
                return self._applied(atom)
            case _:
                assert_never(atom)

    def _unknown(self, term: object, low: int | None, high: int | None) -> Any:
        self.inexact = True
        if term not in self._unknowns:
            self._unknowns[term] = z3.Int(f"unknown{len(self._unknowns)}", self.context)
            self._bound(self._unknowns[term], low, high)
        return self._unknowns[term]

    def _read(self, atom: Read) -> Any:
        memory = self._memory.get(atom.bytes)
        if memory is None:
            integers = z3.IntSort(self.context)
            memory = self._memory[atom.bytes] = z3.Function(f"memory{atom.bytes}", integers, integers)
        address = self.sum(atom.address)
        value = memory(address)
        table = None if self._contents is None else self._contents.table(atom)
        if table is None:
            self.inexact = True
            self._bound(value, atom.low, atom.high)
        elif self._listed and len(table.values) <= MOST_LISTED:
            self._known_read(value, address, table)
        else:
            self.inexact = True
            inside = [address >= table.first, address <= table.last, value >= table.low, value <= table.high]
            self.premises.append(z3.Or(*(z3.Not(g) for g in self._guards), z3.And(inside)))
        return value

    def _under(self, guard: Any, term: Sum) -> Any:
        """Encode a term that matters only where `guard` holds: only there have its reads happened."""
        self._guards.append(guard)
        try:
            return self.sum(term)
        finally:
            self._guards.pop()

    def _condition_under(self, guard: Any, condition: Condition) -> Any:
        self._guards.append(guard)
        try:
            return self.condition(condition)
        finally:
            self._guards.pop()

    def _known_read(self, value: Any, address: Any, table: Table) -> None:
        """A read that happens lies inside its recorded tensor, and yields what is there."""
        places = range(table.first, table.last + 1, table.stride)
        cases = [z3.And(address == p, value == int(v)) for p, v in zip(places, table.values, strict=True)]
        self.premises.append(z3.Or(*(z3.Not(g) for g in self._guards), *cases))

    def _applied(self, atom: Apply) -> Any:
        a, b = self.sum(atom.left), self.sum(atom.right)
        match atom.function:
            case Fn.MUL:
                return a * b
            case Fn.MIN:
                return z3.If(a <= b, a, b)
            case Fn.MAX:
                return z3.If(a >= b, a, b)
            case Fn.FLOOR | Fn.MOD if self._bounder.positive(atom.right):
                return a / b if atom.function is Fn.FLOOR else a % b
            case Fn.DIV:
                quotient = a / b
                return quotient if self._bounder.never_negative(atom.left) else z3.If(a >= 0, quotient, -((-a) / b))
            case Fn.REM:
                rest = a % b
                return rest if self._bounder.never_negative(atom.left) else z3.If(a >= 0, rest, -((-a) % b))
            case _:
                low, high = self._bounder.of(Sum(0, ((atom, 1),)))
                return self._unknown(atom, low, high)

    # ---- conditions --------------------------------------------------------------------------------------------------

    def condition(self, condition: Condition) -> Any:
        found = self._conditions.get(condition)
        if found is None:
            found = self._conditions[condition] = self._condition(condition)
        return found

    def _condition(self, condition: Condition) -> Any:
        match condition:
            case Truth():
                return z3.BoolVal(condition.value, self.context)
            case FreeTruth():
                self.inexact = True
                if condition not in self._unknowns:
                    self._unknowns[condition] = z3.Bool(f"unknown{len(self._unknowns)}", self.context)
                return self._unknowns[condition]
            case Not():
                return z3.Not(self.condition(condition.operand))
            case Both():
                left = self.condition(condition.left)
                return z3.And(left, self._condition_under(left, condition.right))
            case Either():
                left = self.condition(condition.left)
                return z3.Or(left, self._condition_under(z3.Not(left), condition.right))
            case Compare():
                a, b = self.sum(condition.left), self.sum(condition.right)
                match condition.relation:
                    case Relation.EQ:
                        return a == b
                    case Relation.NE:
                        return a != b
                    case Relation.LT:
                        return a < b
                    case Relation.LE:
                        return a <= b
            case _:
                assert_never(condition)
