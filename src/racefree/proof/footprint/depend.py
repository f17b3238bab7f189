"""Which accesses of one program instance a later access depends on, and from which lanes.

A value that is computed from what a load returned cannot exist before that load was done. The relation is kept only where
the dependence is certain: on every path, for the lanes it names.
"""

from __future__ import annotations

from dataclasses import dataclass

from racefree.graph.program import Access, Data, For, Guard, If, Op, Program, Statement, Value, While

EVERY = -1
"""In a relation: the lane of the sink depends on all positions along that dimension of the source."""

Relation = tuple[int, ...]
"""For each tile dimension of the source access: the dimension of the value it equals, or EVERY."""

Sources = dict[int, frozenset[Relation]]
"""Access index -> how a value's lanes depend on that access's lanes."""

MOST_RELATIONS = 4
_LANEWISE_OPS = frozenset(
    {
        "arith.select",
        "tt.addptr",
        "tt.bitcast",
        "tt.int_to_ptr",
        "tt.ptr_to_int",
        "tt.mulhiui",
        "math.absi",
    }
)


_FOLDS = frozenset({"tt.reduce", "tt.scan"})
"""Results folded together need not depend on each other's operands."""

_PARTED = frozenset({"tt.join", "tt.cat"})
"""Operations whose lanes each come from one of the operands: no lane depends on all of them."""


@dataclass(frozen=True, slots=True)
class Dependences:
    """For each access (by index), the accesses that surely come before it in the same iteration of their common loops."""

    of: dict[int, Sources]


def dependences(program: Program) -> Dependences:
    """Certain data dependence between the accesses of one program instance, lane by lane."""
    walker = _Walker()
    walker.block(program.body)
    return Dependences(walker.sinks)


def _merged(*parts: Sources) -> Sources:
    out: dict[int, frozenset[Relation]] = {}
    for part in parts:
        for access, relations in part.items():
            both = out.get(access, frozenset()) | relations
            out[access] = frozenset(sorted(both)[:MOST_RELATIONS])
    return out


def _mapped(sources: Sources, change: dict[int, int] | None) -> Sources:
    """Rename the dimensions of a value (to EVERY where all its lanes are used); a dimension without a name loses the relation.

    None: which lanes are used is not known, so only relations that cover all lanes of the source survive.
    """
    out: dict[int, frozenset[Relation]] = {}
    for access, relations in sources.items():
        kept = set()
        for relation in relations:
            if all(d == EVERY or (change is not None and d in change) for d in relation):
                kept.add(tuple(d if d == EVERY else (change or {})[d] for d in relation))
        if kept:
            out[access] = frozenset(kept)
    return out


class _Walker:
    def __init__(self) -> None:
        self.values: dict[int, Sources] = {}
        self.sinks: dict[int, Sources] = {}

    def of(self, value: Value) -> Sources:
        return self.values.get(value.index, {})

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Op():
                    self._op(statement)
                case Data():
                    self._data(statement)
                case Access():
                    self._access(statement)
                case Guard():
                    self.block(statement.body)
                case If():
                    self._if(statement)
                case For():
                    self._for(statement)
                case While():
                    self.block(statement.before)
                    self.block(statement.after)
                case _:
                    pass

    def _op(self, op: Op) -> None:
        operands = [self.of(o) for o in op.operands]
        if not any(operands) or op.name in _PARTED:
            return
        for at, result in enumerate(op.results):
            parts = zip(operands, op.operands, strict=True)
            if len(op.results) > 1 and op.name in _FOLDS:
                parts = zip(operands[at : at + 1], op.operands[at : at + 1], strict=True)
            self.values[result.index] = _merged(
                *(_mapped(s, dimension_map(op, o.shape, result.shape)) for s, o in parts)
            )

    def _data(self, data: Data) -> None:
        operands = [self.of(o) for o in data.operands]
        if not any(operands) or data.name in _PARTED:
            return
        for at, result in enumerate(data.results):
            parts = []
            for position, (sources, operand) in enumerate(zip(operands, data.operands, strict=True)):
                if len(data.results) > 1 and position != at:
                    continue
                parts.append(_mapped(sources, data_map(data, position, operand.shape, result.shape)))
            self.values[result.index] = _merged(*parts)

    def _access(self, access: Access) -> None:
        dims = tuple(range(len(access.shape)))
        inputs = [access.pointer, *access.operands]
        inputs += [v for v in (access.mask, access.other) if v is not None]
        before = _merged(*(self.of(v) for v in inputs if v.shape == access.shape or not v.shape))
        self.sinks[access.index] = before
        if access.result is None:
            return
        here: Sources = {access.index: frozenset({dims})}
        # Through this access only where it runs whenever its result is used: not where a mask may switch it off.
        self.values[access.result.index] = _merged(here, before) if access.mask is None else here

    def _if(self, branch: If) -> None:
        self.block(branch.then_body)
        self.block(branch.else_body)
        for result, left, right in zip(branch.results, branch.then_yields, branch.else_yields, strict=True):
            a, b = self.of(left), self.of(right)
            common = {k: a[k] & b[k] for k in a.keys() & b.keys() if a[k] & b[k]}
            # A source inside one branch can only have run when that branch was taken.
            inside = [_accesses_in(branch.then_body), _accesses_in(branch.else_body)]
            for side, own in ((a, inside[0]), (b, inside[1])):
                common.update({k: v for k, v in side.items() if k in own})
            self.values[result.index] = common

    def _for(self, loop: For) -> None:
        """Later iterations see the initial value through an accumulation only; without iterations it is all there is."""
        own = _accesses_in(loop.body)
        keeps = [c.index == y.index or _accumulates(loop, c, y) for c, y in zip(loop.carried, loop.yields, strict=True)]
        for carried, init, kept in zip(loop.carried, loop.inits, keeps, strict=True):
            self.values[carried.index] = self.of(init) if kept else {}
        self.block(loop.body)
        for position, result in enumerate(loop.results):
            before, last = self.of(loop.inits[position]), self.of(loop.yields[position])
            if keeps[position]:
                # Every iteration's loads flow into the result; a loop that never runs has none.
                self.values[result.index] = _merged(before, {k: v for k, v in last.items() if k in own})
            else:
                both = {k: v & before[k] for k, v in last.items() if k in before and k not in own}
                self.values[result.index] = {k: v for k, v in both.items() if v}


def _accesses_in(body: tuple[Statement, ...]) -> frozenset[int]:
    from racefree.graph.program import walk

    return frozenset(s.index for s in walk(body) if isinstance(s, Access))


def _accumulates(loop: For, carried: Value, last: Value) -> bool:
    """True when the new carried value is computed, lane for lane, from the old one in every iteration."""
    if carried.index == last.index:
        return False
    reached = {carried.index}
    for statement in loop.body:
        if isinstance(statement, Op) and statement.name != "arith.select":
            same = [o for o in statement.operands if o.index in reached and o.shape == carried.shape]
            if same and all(r.shape == carried.shape for r in statement.results) and _lanewise(statement.name):
                reached |= {r.index for r in statement.results}
        elif isinstance(statement, Data) and statement.lanewise:
            if any(o.index in reached for o in statement.operands):
                reached |= {r.index for r in statement.results}
        elif isinstance(statement, Data) and statement.name == "tt.dot" and statement.operands[2].index in reached:
            reached |= {r.index for r in statement.results}
    return last.index in reached


def _lanewise(name: str) -> bool:
    return name.startswith("arith.") or name in _LANEWISE_OPS


def dimension_map(op: Op, old: tuple[int, ...], new: tuple[int, ...]) -> dict[int, int] | None:
    """Which dimension of the result each dimension of an operand becomes, lane for lane."""
    if _lanewise(op.name):
        return {d: d for d in range(len(new))} if old == new else None
    match op.name:
        case "tt.broadcast":
            return {d: d for d in range(len(new)) if old[d] == new[d]}
        case "tt.expand_dims":
            axis = op.attributes["axis"]
            assert isinstance(axis, int)
            return {d: d + (d >= axis) for d in range(len(old))}
        case "tt.trans":
            order = op.attributes["order"]
            assert isinstance(order, tuple)
            return {d: order.index(d) for d in range(len(old))}
        case "tt.join":
            return {d: d for d in range(len(old))}
        case "tt.split":
            return {d: d for d in range(len(new))}
        case "tt.reshape":
            return {d: d for d in range(len(new))} if old == new and not op.attributes.get("allow_reorder") else None
        case "tt.reduce":
            axis = op.attributes["axis"]
            assert isinstance(axis, int)
            return _reduced(axis, len(old))
        case "tt.scan":
            return {d: d for d in range(len(new))}
        case _:
            return None


def data_map(data: Data, position: int, old: tuple[int, ...], new: tuple[int, ...]) -> dict[int, int] | None:
    if data.lanewise:
        return {d: d for d in range(len(new))} if old == new else None
    if data.name == "tt.scan" and old == new:
        return {d: d for d in range(len(new))}
    if data.name == "tt.reduce" and len(old) == len(new) + 1:
        axes = [axis for axis in range(len(old)) if old[:axis] + old[axis + 1 :] == new]
        return _reduced(axes[0], len(old)) if len(axes) == 1 else None
    if data.name == "tt.dot" and position < 2 and len(old) == len(new) == 2:
        return {0: 0, 1: EVERY} if position == 0 else {0: EVERY, 1: 1}
    if data.name == "tt.dot" and position == 2:
        return {d: d for d in range(len(new))}
    return None


def _reduced(axis: int, dims: int) -> dict[int, int]:
    return {d: EVERY if d == axis else d - (d > axis) for d in range(dims)}


__all__ = ["EVERY", "Dependences", "Relation", "Sources", "dependences"]
