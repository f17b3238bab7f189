"""Random small kernels over loops, branches, barriers, aliased tensors and wrapping integers, from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from program_builder import F32, I1, I8, I32, Kernel, launch, tensor

from racefree.access import Scope as Scopes
from racefree.graph.launch import LaunchFacts, Storage
from racefree.graph.program import Guard, If, Op, Program, Ptr, Value

ELEMENTS = 4096
MIDDLE = ELEMENTS // 2


@dataclass
class Scope:
    """Values in sight, by kind."""

    scalars: list[Value] = field(default_factory=list)
    tiles: list[Value] = field(default_factory=list)
    pointers: list[Value] = field(default_factory=list)
    data: list[Value] = field(default_factory=list)

    def inner(self) -> Scope:
        return Scope(list(self.scalars), list(self.tiles), list(self.pointers), list(self.data))


class Generator:
    """One kernel and its launch."""

    def __init__(self, seed: int, *, barriers: bool = True) -> None:
        self.rng = random.Random(seed)
        self.barriers = barriers
        self.kernel = Kernel()
        self.lanes = 4
        self.budget = self.rng.randint(4, 12)
        self.depth = 0

    def generate(self) -> tuple[Program, LaunchFacts]:
        k, rng = self.kernel, self.rng
        self.bases = [k.tensor("x"), k.tensor("y"), k.tensor("bytes", 1)]
        self.known = k.tensor("known")
        table, n = k.tensor("table"), k.parameter("n", I32)
        scope = Scope()
        pids = [k.pid(axis) for axis in range(rng.choice([1, 1, 2]))]
        scope.scalars += [*pids, n, k.const(rng.randint(-3, 6))]
        where = k.at(table, k.op("arith.andi", pids[0], k.const(7)))
        scope.scalars.append(k.load(where, element=I32))
        lane = k.arange(self.lanes)
        scope.tiles += [lane, k.add(lane, k.mul(pids[0], rng.choice([1, 2, self.lanes, self.lanes]))), k.mul(lane, 2)]
        scope.tiles.append(k.load(k.at(table, k.op("arith.andi", lane, k.const(7, I32, (self.lanes,)))), element=I32))
        for base in self.bases:
            scope.pointers.append(k.at(base, scope.tiles[1]))
        self.block(scope)
        return k.program(), self.launch()

    def launch(self) -> LaunchFacts:
        rng = self.rng
        storage = Storage(1 << 20, ELEMENTS * 4)
        start = (1 << 20) + MIDDLE * 4
        together = rng.random() < 0.5
        other = storage if together else Storage(1 << 30, ELEMENTS * 4)
        return launch(
            (rng.choice([1, 2, 3]), rng.choice([1, 2, 3]), 1),
            x=tensor(start, MIDDLE, 4, storage=storage),
            y=tensor(other.address + MIDDLE * 4 + rng.choice([0, 16, 64]), MIDDLE - 16, 4, storage=other),
            bytes=tensor(start + rng.choice([0, 1, 7]), MIDDLE, 1, storage=storage),
            table=tensor(1 << 25, 8, contents=[rng.randint(-2, 6) for _ in range(8)]),
            known=tensor(1 << 26, 8, contents=[rng.randint(-2, 6) for _ in range(8)]),
            n=rng.choice([0, 1, 2, 3, 5]),
            num_warps=rng.choice([1, 2]),
            warp_size=rng.choice([2, 4]),
        )

    # ---- expressions -------------------------------------------------------------------------------------------------

    def scalar(self, scope: Scope) -> Value:
        k, rng = self.kernel, self.rng
        a, b = rng.choice(scope.scalars), rng.choice(scope.scalars)
        match rng.randrange(9):
            case 0:
                return k.add(a, rng.randint(-3, 5))
            case 1:
                return k.sub(a, b)
            case 2:
                return k.mul(a, rng.randint(-3, 4))
            case 3:
                return k.rem(a, rng.choice([2, 3, 5]))
            case 4:
                return k.op("arith.divsi", a, k.const(rng.choice([2, 3])))
            case 5:
                return k.op(rng.choice(["arith.minsi", "arith.maxsi"]), a, b)
            case 6:
                narrow = k.op("arith.trunci", k.mul(a, rng.choice([40, 100])), element=I8)
                return k.op("arith.extsi", narrow, element=I32)
            case 7:
                condition = self.condition(scope)
                return k.op("arith.select", condition, a, b, element=I32)
            case _:
                return a

    def condition(self, scope: Scope) -> Value:
        k, rng = self.kernel, self.rng
        predicate = rng.choice(["eq", "ne", "slt", "sge", "ult", "sgt"])
        found = k.cmp(predicate, rng.choice(scope.scalars), rng.randint(-1, 3))
        if rng.random() < 0.2:
            found = k.op("arith.xori", found, k.const(1, I1))
        return found

    def tile(self, scope: Scope) -> Value:
        k, rng = self.kernel, self.rng
        a, b = rng.choice(scope.tiles), rng.choice(scope.tiles)
        shape = (self.lanes,)
        match rng.randrange(9):
            case 0:
                return k.add(a, rng.choice(scope.scalars))
            case 1:
                return k.add(a, b)
            case 2:
                return k.mul(a, rng.choice([-1, 2, 3]))
            case 3:
                return k.op("arith.remsi", a, k.const(rng.choice([4, 5, 16]), I32, shape))
            case 4:
                return k.op("arith.divsi", a, k.const(rng.choice([2, 3]), I32, shape))
            case 5:
                return k.op("arith.xori", a, k.const(rng.choice([1, 3, self.lanes - 1]), I32, shape))
            case 6:
                return k.op("arith.select", self.mask(scope), a, b, element=I32)
            case 7:
                return k.sub(k.const(self.lanes - 1, I32, shape), a)
            case _:
                return k.add(a, k.mul(rng.choice(scope.scalars), rng.choice([1, self.lanes])))

    def mask(self, scope: Scope) -> Value:
        k, rng = self.kernel, self.rng
        found = k.cmp(rng.choice(["slt", "sge", "eq", "ne", "ult"]), rng.choice(scope.tiles), rng.choice(scope.scalars))
        if rng.random() < 0.3:
            other = k.cmp("sge", rng.choice(scope.tiles), rng.randint(0, 3))
            found = k.op(rng.choice(["arith.andi", "arith.ori", "arith.muli"]), found, other)
        return found

    def pointer(self, scope: Scope) -> Value:
        """A tile of pointers that cannot leave its storage."""
        k, rng = self.kernel, self.rng
        if rng.random() < 0.4:
            return rng.choice(scope.pointers)
        near = k.op("arith.andi", self.tile(scope), k.const(255, I32, (self.lanes,)))
        return k.at(rng.choice(self.bases), near if rng.random() < 0.5 else rng.choice(scope.tiles[:3]))

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, scope: Scope) -> None:
        for _ in range(self.rng.randint(2, 5)):
            if self.budget <= 0:
                break
            self.budget -= 1
            self.statement(scope)

    def statement(self, scope: Scope) -> None:
        rng = self.rng
        choices: list[tuple[int, Callable[[Scope], None]]] = [
            (5, self.store),
            (4, self.load),
            (2, self.value),
            (1, self.looked_up),
            (1, self.folded_up),
            (1, self.computed),
            (1, self.count_atomically),
            (3 if self.barriers else 0, lambda _: self.kernel.barrier()),
        ]
        if self.depth < 3:
            choices += [(3, self.for_loop), (1, self.while_loop), (2, self.branch), (1, self.guard), (1, self.chosen)]
            choices += [(1, self.opposites)]
        kinds, weights = [c for _, c in choices], [w for w, _ in choices]
        rng.choices(kinds, weights)[0](scope)

    def store(self, scope: Scope) -> None:
        pointer = self.pointer(scope)
        mask = self.mask(scope) if self.rng.random() < 0.4 else None
        stored = self.rng.choice(scope.data) if scope.data and self.rng.random() < 0.6 else None
        self.kernel.store(pointer, stored, mask)

    def load(self, scope: Scope) -> None:
        mask = self.mask(scope) if self.rng.random() < 0.3 else None
        scope.data.append(self.kernel.load(self.pointer(scope), mask, element=F32))

    def looked_up(self, scope: Scope) -> None:
        """An index, or a tile of them, from a table whose contents are known."""
        k, rng = self.kernel, self.rng
        if rng.random() < 0.5:
            at = k.at(self.known, k.op("arith.andi", rng.choice(scope.scalars), k.const(7)))
            scope.scalars.append(k.load(at, element=I32))
            return
        at = k.at(self.known, k.op("arith.andi", self.tile(scope), k.const(7, I32, (self.lanes,))))
        if rng.random() < 0.5:
            scope.tiles.append(k.load(at, element=I32))
        else:
            scope.tiles.append(k.load(at, self.mask(scope), rng.choice(scope.tiles), element=I32))

    def folded_up(self, scope: Scope) -> None:
        """A store of a tile of 2 x 2 lanes, perhaps transposed, of what may be a reshaped load."""
        k, rng = self.kernel, self.rng
        near = k.op("arith.andi", self.tile(scope), k.const(255, I32, (self.lanes,)))
        square = k.op("tt.reshape", near, shape=(2, 2))
        stored = k.op("tt.reshape", rng.choice(scope.data), shape=(2, 2)) if scope.data else None
        if rng.random() < 0.5:
            square = k.op("tt.trans", square, order=(1, 0))
            if stored is not None and rng.random() < 0.5:
                stored = k.op("tt.trans", stored, order=(1, 0))
        k.store(k.at(rng.choice(self.bases), square), stored)

    def computed(self, scope: Scope) -> None:
        """Data from data: lane by lane, every lane from all lanes, or a reduction (a barrier where it spans the warps)."""
        if scope.data and self.rng.random() < 0.4:
            self.kernel.data(self.rng.choice(scope.data), shape=(), lanewise=False, name="tt.reduce")
        elif scope.data:
            operands = [self.rng.choice(scope.data) for _ in range(2)]
            lanewise = self.rng.random() < 0.7
            scope.data.append(
                self.kernel.data(*operands, lanewise=lanewise, name="arith.addf" if lanewise else "mixed")
            )

    def count_atomically(self, scope: Scope) -> None:
        pointer = self.pointer(scope)
        if pointer.element == Ptr(4):
            self.kernel.atomic_add(pointer, self.rng.choice([Scopes.GPU, Scopes.GPU, Scopes.CTA]))

    def value(self, scope: Scope) -> None:
        if self.rng.random() < 0.5:
            scope.scalars.append(self.scalar(scope))
        else:
            scope.tiles.append(self.tile(scope))

    def _nested(self, scope: Scope) -> None:
        self.depth += 1
        self.block(scope)
        self.depth -= 1

    def for_loop(self, scope: Scope) -> None:
        k, rng = self.kernel, self.rng
        lower = k.const(rng.choice([0, 0, 0, 1, -2]))
        if rng.random() < 0.5:
            span = k.const(rng.choice([0, 1, 2, 3, 4]))
        else:
            span = k.op("arith.minsi", self.scalar(scope), k.const(4))
        step = rng.choice([1, 1, 1, 2])
        carried = [rng.choice(scope.scalars), rng.choice(scope.tiles), rng.choice(scope.pointers)]
        carried += scope.data[-1:]
        carried = [c for c in carried if rng.random() < 0.6]
        with k.loop(lower, k.add(lower, span), step, carried) as loop:
            inside = scope.inner()
            inside.scalars.append(loop.index)
            for value in loop.carried:
                self._list(inside, value).append(value)
            self._nested(inside)
            loop.yields(*(self._advanced(inside, value) for value in loop.carried))
        for value in loop.results:
            self._list(scope, value).append(value)

    def _list(self, scope: Scope, value: Value) -> list[Value]:
        if isinstance(value.element, Ptr):
            return scope.pointers
        if value.element == F32:
            return scope.data
        return scope.tiles if value.shape else scope.scalars

    def _advanced(self, scope: Scope, value: Value) -> Value:
        k, rng = self.kernel, self.rng
        if isinstance(value.element, Ptr):
            by = k.const(rng.choice([0, 1, -2, self.lanes]), I32, (self.lanes,))
            if rng.random() < 0.3:
                by = k.op("arith.andi", rng.choice(scope.tiles), k.const(15, I32, (self.lanes,)))
            return k.at(value, by)
        if value.element == F32:
            other = rng.choice(scope.data)
            return rng.choice([value, other, k.data(value, other)])
        match rng.randrange(6):
            case 0:
                return value
            case 1:
                return rng.choice(scope.tiles if value.shape else scope.scalars)
            case 2 if not value.shape:
                return self.scalar(scope)
            case 2:
                return self.tile(scope)
            case 3:
                return k.sub(value, rng.randint(-2, 3))
            case _:
                return k.add(value, rng.choice([1, 2, self.lanes]))

    def while_loop(self, scope: Scope) -> None:
        """Counts down to 0 from a small number; carries a tile along."""
        k, rng = self.kernel, self.rng
        start = k.op("arith.minsi", self.scalar(scope), k.const(3))
        loop = k.repeat([start, rng.choice(scope.tiles)])
        with loop.before():
            if rng.random() < 0.4:
                checked = scope.inner()
                checked.scalars.append(loop.before_args[0])
                checked.tiles.append(loop.before_args[1])
                self._nested(checked)
            condition = k.cmp("sgt", loop.before_args[0], 0)
        with loop.after():
            inside = scope.inner()
            inside.scalars.append(loop.after_args[0])
            inside.tiles.append(loop.after_args[1])
            self._nested(inside)
            following = [k.sub(loop.after_args[0], 1), self._advanced(inside, loop.after_args[1])]
        loop.close(condition, loop.before_args, following)
        scope.scalars.append(loop.results[0])
        scope.tiles.append(loop.results[1])

    def branch(self, scope: Scope) -> None:
        with self.kernel.when(self.condition(scope)):
            self._nested(scope.inner())

    def opposites(self, scope: Scope) -> None:
        """What runs if a condition holds, and later what runs if it does not."""
        k, rng = self.kernel, self.rng
        first, second = self.condition(scope), self.condition(scope)
        either = k.op(rng.choice(["arith.andi", "arith.ori"]), first, second)
        condition = rng.choice([first, either])
        with k.when(condition):
            self._nested(scope.inner())
        with k.when(k.op("arith.xori", rng.choice([condition, first]), k.const(1, I1))):
            self._nested(scope.inner())

    def guard(self, scope: Scope) -> None:
        """The rest of a body that runs unless the kernel returned early (only where nothing follows)."""
        with self.kernel.guard(self.condition(scope)):
            self._nested(scope.inner())

    def chosen(self, scope: Scope) -> None:
        """An `if` with a body on both sides that yields a tile."""
        k, rng = self.kernel, self.rng
        condition = self.condition(scope)
        bodies, yields = [], []
        for _ in range(2):
            with k._body() as body:
                inside = scope.inner()
                self._nested(inside)
                yields.append(self.tile(inside) if rng.random() < 0.5 else rng.choice(inside.tiles))
            bodies.append(tuple(body))
        result = k.value(I32, (self.lanes,))
        k.emit(If(condition, bodies[0], (yields[0],), bodies[1], (yields[1],), (result,), k.site()))
        scope.tiles.append(result)


def generate(seed: int, *, barriers: bool = True) -> tuple[Program, LaunchFacts]:
    return Generator(seed, barriers=barriers).generate()


__all__ = ["Guard", "Op", "generate"]
