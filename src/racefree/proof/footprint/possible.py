"""Which earlier accesses of a program instance a later one might depend on: everything a dependence could order.

The counterpart of `depend`: where that keeps only what is certain, this loses nothing. A pair of accesses may be called a race
only where no dependence, however uncertain, could order it.
"""

from __future__ import annotations

from racefree.graph.program import Access, Data, For, Guard, If, Op, Program, Statement, Value, While
from racefree.proof.footprint.depend import EVERY, Relation, data_map, dimension_map

Flow = tuple[Relation, bool]
"""How a value's lanes may depend on an access's lanes, and whether through an earlier iteration of a loop."""

Flows = dict[int, frozenset[Flow]]

MOST_FLOWS = 6
MOST_ROUNDS = 4


def possible_dependences(program: Program) -> dict[int, Flows]:
    """For each access (by index), the accesses it may depend on, and how."""
    walker = _Walker()
    walker.block(program.body)
    return walker.sinks


def _joined(*parts: Flows) -> Flows:
    out: Flows = {}
    for part in parts:
        for access, flows in part.items():
            both = out.get(access, frozenset()) | flows
            if len(both) > MOST_FLOWS:
                both = frozenset({(tuple(EVERY for _ in next(iter(both))[0]), True)})
            out[access] = both
    return out


def _mapped(flows: Flows, change: dict[int, int] | None) -> Flows:
    """Rename dimensions; where one is lost, any lane may be meant."""
    names = change or {}
    return {
        access: frozenset((tuple(names.get(d, EVERY) for d in relation), across) for relation, across in each)
        for access, each in flows.items()
    }


def _later(flows: Flows) -> Flows:
    return {access: frozenset((relation, True) for relation, _ in each) for access, each in flows.items()}


class _Walker:
    def __init__(self) -> None:
        self.values: dict[int, Flows] = {}
        self.sinks: dict[int, Flows] = {}

    def of(self, value: Value) -> Flows:
        return self.values.get(value.index, {})

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Op():
                    maps = [
                        dimension_map(statement, o.shape, r.shape)
                        for r in statement.results
                        for o in statement.operands
                    ]
                    self._computed(statement, maps)
                case Data():
                    maps = [
                        data_map(statement, position, o.shape, r.shape)
                        for r in statement.results
                        for position, o in enumerate(statement.operands)
                    ]
                    self._computed(statement, maps)
                case Access():
                    self._access(statement)
                case Guard():
                    self.block(statement.body)
                case If():
                    self.block(statement.then_body)
                    self.block(statement.else_body)
                    for result, a, b in zip(
                        statement.results, statement.then_yields, statement.else_yields, strict=True
                    ):
                        self.values[result.index] = _joined(self.of(a), self.of(b))
                case For():
                    self._for(statement)
                case While():
                    self._while(statement)
                case _:
                    pass

    def _computed(self, statement: Op | Data, maps: list[dict[int, int] | None]) -> None:
        if statement.name == "tt.scan":
            maps = [None] * len(maps)  # a lane holds what lanes before it held, too
        operands = [self.of(o) for o in statement.operands]
        if not any(operands):
            return
        for at, result in enumerate(statement.results):
            own = maps[at * len(operands) : (at + 1) * len(operands)]
            self.values[result.index] = _joined(*(_mapped(f, m) for f, m in zip(operands, own, strict=True)))

    def _access(self, access: Access) -> None:
        inputs = [access.pointer, *access.operands, *(v for v in (access.mask, access.other) if v is not None)]
        same = {d: d for d in range(len(access.shape))}
        before = _joined(*(_mapped(self.of(v), same if v.shape == access.shape else None) for v in inputs))
        self.sinks[access.index] = _joined(self.sinks.get(access.index, {}), before)
        if access.result is not None:
            here: Flows = {access.index: frozenset({(tuple(range(len(access.shape))), False)})}
            self.values[access.result.index] = _joined(here, before)

    def _for(self, loop: For) -> None:
        for carried, init in zip(loop.carried, loop.inits, strict=True):
            self.values[carried.index] = self.of(init)
        self._repeat(list(loop.carried), list(loop.yields), lambda: self.block(loop.body))
        for result, init, last in zip(loop.results, loop.inits, loop.yields, strict=True):
            self.values[result.index] = _joined(self.of(init), _later(self.of(last)))

    def _while(self, loop: While) -> None:
        for argument, init in zip(loop.before_args, loop.inits, strict=True):
            self.values[argument.index] = self.of(init)

        def once() -> None:
            self.block(loop.before)
            for argument, value in zip(loop.after_args, loop.forwarded, strict=True):
                self.values[argument.index] = self.of(value)
            self.block(loop.after)

        self._repeat(list(loop.before_args), list(loop.after_yields), once)
        for result, value in zip(loop.results, loop.forwarded, strict=True):
            self.values[result.index] = _later(self.of(value))

    def _repeat(self, carried: list[Value], yields: list[Value], once: object) -> None:
        """Run the body until what flows round the loop no longer grows; the last rounds give up on telling lanes apart."""
        assert callable(once)
        for turn in range(2 * MOST_ROUNDS):
            once()
            grown = False
            for value, last in zip(carried, yields, strict=True):
                before = self.of(value)
                after = _joined(before, _later(self.of(last)))
                if turn >= MOST_ROUNDS:
                    after = {a: frozenset({(tuple(EVERY for _ in next(iter(f))[0]), True)}) for a, f in after.items()}
                if after != before:
                    self.values[value.index] = after
                    grown = True
            if not grown:
                return
        once()
