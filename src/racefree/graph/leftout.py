"""Whether a kernel looks at what a masked load leaves out: such a lane holds nothing certain unless `other` says what.

A value is followed with the masks of the loads that left some of its lanes out. Lane for lane it is certain wherever all of
these masks hold, so a store under one of them may take it, and a choice by one of them makes it certain again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from racefree.graph.program import Access, Data, For, Guard, If, Int, Op, Program, Statement, Value, While, walk

Masks = frozenset[int]
"""Values that are masks, by index."""

_NONE: Masks = frozenset()
_UNKNOWN = -1
"""Stands for a mask that nothing is known to imply."""

_LANEWISE = ("arith.", "math.", "tt.addptr", "tt.bitcast", "tt.int_to_ptr", "tt.ptr_to_int", "tt.mulhiui")


class _LooksAtIt(Exception):
    """An access or a branch depends on a lane that was left out."""


def looks_at_left_out_lanes(program: Program) -> bool:
    """True unless no access, and no branch, depends on a lane that the mask of its load left out."""
    try:
        _Follower().run(program)
    except _LooksAtIt:
        return True
    return False


@dataclass(slots=True)
class _Follower:
    """`left_out` are the masks of the loads that each value may lack lanes of, `implied` what each mask implies.

    `always` are the masks that hold throughout.
    """

    left_out: dict[int, Masks] = field(default_factory=dict)
    always: set[int] = field(default_factory=set)
    implied: dict[int, Masks] = field(default_factory=dict)
    changed: bool = False

    def run(self, program: Program) -> None:
        self.changed = True
        while self.changed:
            self.changed = False
            self._body(program.body)

    def _body(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Access():
                self._access(statement)
            case Op() | Data():
                self._value(statement)
            case Guard():
                self._certain(statement.condition)
                self._body(statement.body)
            case If():
                self._certain(statement.condition)
                self._body(statement.then_body)
                self._body(statement.else_body)
                self._leave(statement.then_body, statement.then_yields, statement.results)
                self._leave(statement.else_body, statement.else_yields, statement.results)
            case For():
                self._certain(statement.lower, statement.upper, statement.step)
                for targets in (statement.carried, statement.results):
                    self._leave((), statement.inits, targets)
                    self._leave((statement,), statement.yields, targets)
                self._body(statement.body)
            case While():
                self._leave((), statement.inits, statement.before_args)
                self._leave((statement,), statement.after_yields, statement.before_args)
                self._body(statement.before)
                self._certain(statement.condition)
                for targets in (statement.after_args, statement.results):
                    self._leave((statement,), statement.forwarded, targets)
                self._body(statement.after)
            case _:
                pass

    def _access(self, access: Access) -> None:
        inside = _NONE if access.mask is None else self._implies(access.mask)
        if access.mask is not None:
            self._certain(access.mask)
        for value in (access.pointer, *access.operands):
            self._certain(value, where=inside)
        if access.result is None:
            return
        if access.other is not None:
            self._add(access.result, self._of(access.other))
        elif access.mask is not None and access.mask.index not in self.always:
            self._add(access.result, frozenset((access.mask.index,)))

    def _value(self, statement: Op | Data) -> None:
        shapes = {value.shape for value in (*statement.operands, *statement.results)}
        lanewise = statement.lanewise if isinstance(statement, Data) else statement.name.startswith(_LANEWISE)
        if (
            isinstance(statement, Op)
            and statement.name == "arith.constant"
            and statement.attributes["value"] in (1, -1)
        ):
            self.always.add(statement.results[0].index)
        if statement.name == "ub.poison":
            found: Masks = frozenset((_UNKNOWN,))
        elif not lanewise or len(shapes) > 1:
            found = frozenset((_UNKNOWN,)) if any(map(self._of, statement.operands)) else _NONE
        elif statement.name == "arith.select":
            condition, then, other = statement.operands
            found = self._of(condition) | (self._of(then) - self._implies(condition)) | self._of(other)
        elif statement.name == "arith.andi" and statement.results[0].element == Int(1):
            a, b = statement.operands
            found = (self._of(a) - self._implies(b)) | (self._of(b) - self._implies(a))
            own = self._implies(statement.results[0])
            self.implied[statement.results[0].index] = own | self._implies(a) | self._implies(b)
        else:
            found = _NONE.union(*map(self._of, statement.operands))
        for result in statement.results:
            self._add(result, found)

    def _leave(self, body: tuple[Statement, ...], sources: Iterable[Value], targets: Iterable[Value]) -> None:
        """Values go on outside of a body, or in its next round; there its masks are others of the same name."""
        inner = {value.index for statement in walk(body) for value in _named(statement)}
        for source, target in zip(sources, targets, strict=True):
            self._add(target, frozenset(_UNKNOWN if mask in inner else mask for mask in self._of(source)))

    def _of(self, value: Value) -> Masks:
        return self.left_out.get(value.index, _NONE)

    def _implies(self, mask: Value) -> Masks:
        return self.implied.get(mask.index, _NONE) | {mask.index}

    def _add(self, value: Value, masks: Masks) -> None:
        if not masks <= self._of(value):
            self.left_out[value.index] = self._of(value) | masks
            self.changed = True

    def _certain(self, *values: Value, where: Masks = _NONE) -> None:
        if any(not self._of(value) <= where for value in values):
            raise _LooksAtIt


def _named(statement: Statement) -> tuple[Value, ...]:
    """What a statement gives a value each time it runs: its results, and what its loop goes round with."""
    match statement:
        case Op() | Data() | If():
            return statement.results
        case For():
            return (*statement.results, *statement.carried, statement.induction)
        case While():
            return (*statement.results, *statement.before_args, *statement.after_args)
        case Access(result=Value() as result):
            return (result,)
        case _:
            return ()
