"""Terms as Z3 expressions, one copy of the private variables per execution, with the bounds every query assumes."""

from __future__ import annotations

from typing import Any, assert_never

import z3

from racefree.proof.smt.contents import Contents
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
    VarKind,
)


def _near(address: Sum) -> int:
    """An address inside the storage a read belongs to: the constant part of its address, which holds the tensor's base."""
    return address.constant


_PRIVATE = frozenset((VarKind.LANE, VarKind.ITERATION, VarKind.PROGRAM))


class Encoding:
    """One fresh Z3 context and the names in it. `premises` collects the bounds of all that has been encoded.

    Unknown values are one constant per term and copy; memory nobody writes is one function per width, for both copies.
    `inexact` becomes true when something is encoded as an unconstrained value, so that a model need not be real.
    """

    def __init__(self, contents: Contents | None = None) -> None:
        self.context = z3.Context()
        self._contents = contents
        self._guards: list[Any] = []
        self.premises: list[Any] = []
        self.inexact = False
        self._bounder = Bounder()
        self._variables: dict[tuple[Var, int], Any] = {}
        self._unknowns: dict[tuple[object, int], Any] = {}
        self._memory: dict[int, Any] = {}
        self._atoms: dict[tuple[Atom, int], Any] = {}
        self._conditions: dict[tuple[Condition, int], Any] = {}

    # ---- names -------------------------------------------------------------------------------------------------------

    def variable(self, var: Var, copy: int) -> Any:
        """The constant for a variable: one per copy if it is private to an execution."""
        key = (var, copy if var.kind in _PRIVATE else 0)
        found = self._variables.get(key)
        if found is None:
            name = f"{var.name}@{copy}" if var.kind in _PRIVATE else var.name
            found = self._variables[key] = z3.Int(name, self.context)
            self._bound(found, var.low, var.high)
        return found

    def _bound(self, expression: Any, low: int | None, high: int | None) -> None:
        if low is not None:
            self.premises.append(expression >= low)
        if high is not None:
            self.premises.append(expression <= high)

    def known_variables(self) -> dict[tuple[Var, int], Any]:
        return self._variables

    # ---- integers ----------------------------------------------------------------------------------------------------

    def sum(self, term: Sum, copy: int) -> Any:
        parts = [self._scaled(self._atom(atom, copy), factor) for atom, factor in term.parts]
        if not parts:
            return z3.IntVal(term.constant, self.context)
        total = parts[0] if len(parts) == 1 else z3.Sum(parts)
        return total + term.constant if term.constant else total

    @staticmethod
    def _scaled(expression: Any, factor: int) -> Any:
        return expression if factor == 1 else factor * expression

    def _atom(self, atom: Atom, copy: int) -> Any:
        key = (atom, copy)
        found = self._atoms.get(key)
        if found is None:
            found = self._atoms[key] = self._encoded(atom, copy)
        return found

    def _encoded(self, atom: Atom, copy: int) -> Any:
        match atom:
            case Var():
                return self.variable(atom, copy)
            case Unknown():
                return self._unknown(atom, copy, atom.low, atom.high)
            case Read():
                return self._read(atom, copy)
            case Choose():
                return z3.If(
                    self.condition(atom.condition, copy), self.sum(atom.then, copy), self.sum(atom.other, copy)
                )
            case Apply():
                return self._applied(atom, copy)
            case _:
                assert_never(atom)

    def _unknown(self, term: object, copy: int, low: int | None, high: int | None) -> Any:
        self.inexact = True
        key = (term, copy)
        if key not in self._unknowns:
            self._unknowns[key] = z3.Int(f"unknown{len(self._unknowns)}@{copy}", self.context)
            self._bound(self._unknowns[key], low, high)
        return self._unknowns[key]

    def _read(self, atom: Read, copy: int) -> Any:
        memory = self._memory.get(atom.bytes)
        if memory is None:
            integers = z3.IntSort(self.context)
            memory = self._memory[atom.bytes] = z3.Function(f"memory{atom.bytes}", integers, integers)
        address = self.sum(atom.address, copy)
        value = memory(address)
        table = None if self._contents is None else self._contents.table(_near(atom.address), atom.bytes)
        if table is None:
            self.inexact = True
            self._bound(value, atom.low, atom.high)
            return value
        key = (atom, copy)
        if key not in self._unknowns:
            self._unknowns[key] = z3.Int(f"read{len(self._unknowns)}@{copy}", self.context)
            self._known_read(self._unknowns[key], address, table)
        return self._unknowns[key]

    def _under(self, guard: Any, term: Sum, copy: int) -> Any:
        """Encode a term that matters only where `guard` holds: only there have its reads happened."""
        self._guards.append(guard)
        try:
            return self.sum(term, copy)
        finally:
            self._guards.pop()

    def _known_read(self, value: Any, address: Any, table: list[tuple[int, int]]) -> None:
        """A read that happens lies inside its recorded tensor, and yields what is there."""
        cases = [z3.And(address == place, value == number) for place, number in table]
        self.premises.append(z3.Or(*(z3.Not(g) for g in self._guards), *cases))

    def _applied(self, atom: Apply, copy: int) -> Any:
        a, b = self.sum(atom.left, copy), self.sum(atom.right, copy)
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
                return self._unknown(atom, copy, low, high)

    # ---- conditions --------------------------------------------------------------------------------------------------

    def condition(self, condition: Condition, copy: int) -> Any:
        key = (condition, copy)
        found = self._conditions.get(key)
        if found is None:
            found = self._conditions[key] = self._condition(condition, copy)
        return found

    def _condition(self, condition: Condition, copy: int) -> Any:
        match condition:
            case Truth():
                return z3.BoolVal(condition.value, self.context)
            case FreeTruth():
                self.inexact = True
                key = (condition, copy)
                if key not in self._unknowns:
                    self._unknowns[key] = z3.Bool(f"unknown{len(self._unknowns)}@{copy}", self.context)
                return self._unknowns[key]
            case Not():
                return z3.Not(self.condition(condition.operand, copy))
            case Both():
                return z3.And(self.condition(condition.left, copy), self.condition(condition.right, copy))
            case Either():
                return z3.Or(self.condition(condition.left, copy), self.condition(condition.right, copy))
            case Compare():
                a, b = self.sum(condition.left, copy), self.sum(condition.right, copy)
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
