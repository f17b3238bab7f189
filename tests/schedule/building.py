"""Random programs whose instances meet through atomics, built without a front end."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from racefree.access import Kind, Scope, Sem, Site
from racefree.graph.launch import LaunchFacts, Storage, Tensor
from racefree.graph.program import (
    Access,
    Attribute,
    Barrier,
    Element,
    For,
    If,
    Int,
    Op,
    Parameter,
    Program,
    Ptr,
    Statement,
    Value,
    While,
)

LANES = 128
BLOCKS = 2
CELLS = 2
I1, I32, P32 = Int(1), Int(32), Ptr(4)


@dataclass
class Builder:
    """Numbers values and accesses; every statement stands on a line of its own."""

    rng: random.Random
    values: int = 0
    accesses: int = 0
    lines: int = 0
    body: list[Statement] = field(default_factory=list)

    def value(self, element: Element, shape: tuple[int, ...] = ()) -> Value:
        self.values += 1
        return Value(self.values, element, shape)

    def site(self) -> Site:
        self.lines += 1
        return Site("random", self.lines)

    def op(
        self, name: str, element: Element, shape: tuple[int, ...], *operands: Value, **attributes: Attribute
    ) -> Value:
        result = self.value(element, shape)
        self.body.append(Op(name, (result,), operands, attributes, self.site()))
        return result

    def number(self, value: int) -> Value:
        return self.op("arith.constant", I32, (), value=value)

    def at(self, base: Value, offset: int, *, tile: bool) -> Value:
        shift = self.number(offset)
        if not tile:
            return self.op("tt.addptr", P32, (), base, shift)
        lanes = self.op("tt.make_range", I32, (LANES,), start=0, end=LANES)
        wide = self.op("tt.splat", I32, (LANES,), shift)
        places = self.op("arith.addi", I32, (LANES,), lanes, wide)
        return self.op("tt.addptr", P32, (LANES,), self.op("tt.splat", P32, (LANES,), base), places)

    def access(
        self,
        kind: Kind,
        pointer: Value,
        operands: tuple[Value, ...],
        *,
        sem: Sem | None = None,
        scope: Scope | None = None,
        rmw: str | None = None,
    ) -> Value | None:
        result = None if kind is Kind.STORE else self.value(I32, pointer.shape)
        index, self.accesses = self.accesses, self.accesses + 1
        self.body.append(
            Access(index, kind, pointer, None, operands, result, None, 4, self.site(), sem=sem, scope=scope, rmw=rmw)
        )
        return result

    def barrier(self) -> None:
        self.body.append(Barrier(True, True, self.site()))

    def nested(self, fill: object) -> tuple[Statement, ...]:
        outer, self.body = self.body, []
        fill()  # type: ignore[operator]
        inner, self.body = self.body, outer
        return tuple(inner)


@dataclass
class Random:
    """Writes one random program. `data` holds BLOCKS tiles, `cells` CELLS atomic integers."""

    rng: random.Random
    b: Builder
    data: Value
    cells: Value

    def pick_sem(self) -> Sem:
        return self.rng.choice((Sem.RELEASE, Sem.ACQUIRE, Sem.ACQ_REL, Sem.ACQ_REL, Sem.RELAXED))

    def scope(self) -> Scope:
        return Scope.CTA if self.rng.random() < 0.05 else Scope.GPU

    def touch(self) -> None:
        tile = self.rng.random() < 0.6
        block = self.rng.randrange(BLOCKS)
        pointer = self.b.at(self.data, block * LANES, tile=tile)
        if self.rng.random() < 0.5:
            self.b.access(Kind.LOAD, pointer, ())
        else:
            self.b.access(Kind.STORE, pointer, (self._stored(tile),))

    def _stored(self, tile: bool) -> Value:
        one = self.b.number(1)
        return self.b.op("tt.splat", I32, (LANES,), one) if tile else one

    def atomic(self) -> Value:
        cell = self.b.at(self.cells, self.rng.randrange(CELLS), tile=False)
        sem, scope = self.pick_sem(), self.scope()
        if self.rng.random() < 0.3:
            pair = (self.b.number(self.rng.randrange(2)), self.b.number(self.rng.randrange(3)))
            found = self.b.access(Kind.CAS, cell, pair, sem=sem, scope=scope)
        else:
            rmw = self.rng.choice(("add", "add", "exch", "or"))
            operand = self.b.number(self.rng.choice((0, 1, 1, 2)))
            found = self.b.access(Kind.RMW, cell, (operand,), sem=sem, scope=scope, rmw=rmw)
        assert found is not None
        return found

    def plain_cell(self, depth: int) -> None:
        """A plain access to an atomic cell: a store, or a load that a branch may depend on."""
        cell = self.b.at(self.cells, self.rng.randrange(CELLS), tile=False)
        if self.rng.random() < 0.5:
            self.b.access(Kind.STORE, cell, (self.b.number(self.rng.randrange(3)),))
            return
        seen = self.b.access(Kind.LOAD, cell, ())
        assert seen is not None
        if depth < 3 and self.rng.random() < 0.6:
            self.guarded(seen, depth)

    def repeated(self, depth: int) -> None:
        """A counted loop of two rounds."""
        b = self.b
        low, high, one = b.number(0), b.number(2), b.number(1)
        induction = b.value(I32)
        body = b.nested(lambda: self.steps(self.rng.randint(1, 2), depth + 1))
        b.body.append(For(induction, low, high, one, (), (), body, (), (), False, b.site()))

    def step(self, depth: int) -> None:
        what = self.rng.random()
        if what < 0.04:
            self.plain_cell(depth)
        elif what < 0.09 and depth < 2:
            self.repeated(depth)
        elif what < 0.4:
            self.touch()
        elif what < 0.6:
            self.b.barrier()
        elif what < 0.75:
            self.atomic()
        elif what < 0.85 and depth < 3:
            self.guarded(self.atomic(), depth)
        elif what < 0.95:
            self.wait()
        else:
            self.b.barrier()
            self.atomic()

    def guarded(self, seen: Value, depth: int) -> None:
        wanted = self.b.number(self.rng.randrange(3))
        predicate = self.rng.choice(("eq", "eq", "ne", "sge"))
        condition = self.b.op("arith.cmpi", I1, (), seen, wanted, predicate=predicate)
        then = self.b.nested(lambda: self.steps(self.rng.randint(1, 3), depth + 1))
        other = self.b.nested(lambda: self.steps(self.rng.randint(0, 1), depth + 1))
        self.b.body.append(If(condition, then, (), other, (), (), self.b.site()))

    def wait(self) -> None:
        """Spin until a cell holds a value (or compare-and-swap it)."""
        holder: list[Value] = []

        def before() -> None:
            cell = self.b.at(self.cells, self.rng.randrange(CELLS), tile=False)
            sem = self.rng.choice((Sem.ACQUIRE, Sem.ACQUIRE, Sem.ACQ_REL, Sem.RELAXED))
            if self.rng.random() < 0.3:
                pair = (self.b.number(0), self.b.number(1))
                seen = self.b.access(Kind.CAS, cell, pair, sem=sem, scope=Scope.GPU)
            else:
                seen = self.b.access(Kind.RMW, cell, (self.b.number(0),), sem=sem, scope=Scope.GPU, rmw="add")
            assert seen is not None
            predicate = self.rng.choice(("ne", "slt"))
            holder.append(
                self.b.op("arith.cmpi", I1, (), seen, self.b.number(self.rng.randrange(3)), predicate=predicate)
            )

        body = self.b.nested(before)
        self.b.body.append(While((), (), body, holder[0], (), (), (), (), (), self.b.site()))

    def steps(self, count: int, depth: int) -> None:
        for _ in range(count):
            self.step(depth)


def random_program(seed: int) -> tuple[Program, LaunchFacts]:
    """Two or three program instances, each with a role of its own or sharing one."""
    rng = random.Random(seed)
    b = Builder(rng)
    data, cells = b.value(P32), b.value(P32)
    writer = Random(rng, b, data, cells)
    pid = b.op("tt.get_program_id", I32, (), axis=0)
    programs = rng.choice((2, 2, 3))
    roles = rng.choice((1, 2, programs))

    def role(number: int) -> None:
        if number == roles - 1:
            writer.steps(rng.randint(2, 6), 0)
            return
        condition = b.op("arith.cmpi", I1, (), pid, b.number(number), predicate="eq")
        then = b.nested(lambda: writer.steps(rng.randint(2, 6), 0))
        other = b.nested(lambda: role(number + 1))
        b.body.append(If(condition, then, (), other, (), (), b.site()))

    role(0)
    parameters = (Parameter("data", data), Parameter("cells", cells))
    program = Program("random", parameters, tuple(b.body), Site("random", 0))
    return program, launch(programs, rng.choice((0, 0, 0, 1)))


def launch(programs: int, initial: int) -> LaunchFacts:
    arguments = {
        "data": _tensor(4096, np.zeros(BLOCKS * LANES, np.int32)),
        "cells": _tensor(65536, np.full(CELLS, initial, np.int32)),
    }
    return LaunchFacts("random", (programs, 1, 1), arguments, triton_version="3.8.0", target="cuda:80")


def _tensor(address: int, values: np.ndarray) -> Tensor:  # type: ignore[type-arg]
    storage = Storage(address, values.nbytes, values.view(np.uint8).copy())
    return Tensor(address, 4, "int32", values.shape, (1,), storage)
