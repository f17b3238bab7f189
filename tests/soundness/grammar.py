"""Random small kernels: mostly sensible partitions of a tensor among programs, with something off now and then."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from kernels import Kernel, Node, TensorSpec, Term


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a kernel gets. `programs`: program ids along an axis are assumed to stay below, so that grids up to it are
    in bounds; `elems` of each base tensor; choices for lanes of a tile, iterations of a loop, and grids."""

    programs: int = 7
    elems: int = 2048
    lanes: tuple[int, ...] = (4, 8, 16, 32, 32, 64, 64, 128)
    trips: tuple[int, ...] = (1, 2, 3)
    grids: tuple[tuple[int, ...], ...] = ((1,), (2,), (2,), (3,), (4,), (4,), (2, 2), (1, 3), (2, 1, 2))


LARGE = Scale(14, 65536, (32, 64, 128, 256), (4, 7, 12), ((5,), (7,), (12,), (3, 3), (2, 5), (13,)))

DTYPES = (
    *("int32", "int32", "int32", "float32", "float32", "int16", "int8", "int64", "float16"),
    *("uint8", "uint16", "uint32", "bfloat16", "float64"),
)
WIDTH = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "uint32": 4}
WIDTH |= {"float32": 4, "int64": 8, "float64": 8}


@dataclass(slots=True)
class Scope:
    """Names that may be read here: integer scalars with bounds, and loaded values by shape."""

    scalars: list[Term]
    loaded_tiles: list[str] = field(default_factory=list)
    loaded_scalars: list[str] = field(default_factory=list)

    def inner(self) -> Scope:
        return Scope(list(self.scalars), list(self.loaded_tiles), list(self.loaded_scalars))


Pattern = Callable[["Generator", Scope], list[Node]]
"""Writes a few statements that belong together; an empty list where it does not fit."""


@dataclass(slots=True)
class Generator:
    """Draws one kernel. `patterns` are statements beyond the plain ones of this module."""

    rng: random.Random
    patterns: tuple[Pattern, ...] = ()
    scale: Scale = Scale()
    tile: tuple[int, ...] = ()
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    scalars: dict[str, int] = field(default_factory=dict)
    count: int = 0
    loops: list[Term] = field(default_factory=list)
    pid: Term = field(default_factory=lambda: Term("0", 0, 0))
    lane: Term = field(default_factory=lambda: Term("0", 0, 0))
    cells: dict[str, Callable[[], Term]] = field(default_factory=dict)
    budget: int = 0

    # ---- names -------------------------------------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # ---- integer expressions -----------------------------------------------------------------------------------------

    def anything(self, scope: Scope, depth: int, *, tile: bool) -> Term:
        """A random expression over what is in scope."""
        if depth == 0 or self.chance(0.25):
            atoms = [*scope.scalars, Term(*constant(self.rng.randrange(0, 9)))]
            if tile and self.chance(0.7):
                return self.lane
            return self.rng.choice(atoms)
        a = self.anything(scope, depth - 1, tile=tile)
        b = self.anything(scope, depth - 1, tile=tile)
        return self.combine(a, b, scope)

    def combine(self, a: Term, b: Term, scope: Scope) -> Term:
        k = self.rng.choice((2, 3, 4, 5, 8))
        m = k - 1
        both = a.tile or b.tile
        match self.rng.randrange(16):
            case 0 | 1:
                return Term(f"({a.text} + {b.text})", a.low + b.low, a.high + b.high, both)
            case 2:
                return Term(f"({a.text} - {b.text})", a.low - b.high, a.high - b.low, both)
            case 3 | 4:
                return Term(f"({a.text} * {k})", a.low * k, a.high * k, a.tile)
            case 5:
                ends = [_quotient(a.low, k), _quotient(a.high, k)]
                return Term(f"({a.text} // {k})", min(ends), max(ends), a.tile)
            case 6:
                return Term(f"({a.text} % {k})", 0 if a.low >= 0 else -m, min(m, max(a.high, 0)), a.tile)
            case 7 if a.low >= 0:
                return Term(f"({a.text} ^ {m})", 0, (1 << max(a.high, m).bit_length()) - 1, a.tile)
            case 8:
                return Term(f"({a.text} & 7)", 0, 7, a.tile)
            case 9:
                return Term(f"({a.text} >> 1)", a.low >> 1, a.high >> 1, a.tile)
            case 10:
                return Term(f"tl.minimum({a.text}, {b.text})", min(a.low, b.low), min(a.high, b.high), both)
            case 11:
                return Term(f"tl.maximum({a.text}, {b.text})", max(a.low, b.low), max(a.high, b.high), both)
            case 12:
                condition = self.condition(scope, tile=both)
                tile = both or condition.tile
                text = f"tl.where({condition.text}, {a.text}, {b.text})"
                return Term(text, min(a.low, b.low), max(a.high, b.high), tile)
            case 13:
                return self.wrapped(a)
            case 14 if a.low >= 0:
                return Term(f"({a.text} << 1)", a.low * 2, a.high * 2, a.tile)
            case _:
                return Term(f"({a.text} + {k})", a.low + k, a.high + k, a.tile)

    def wrapped(self, a: Term) -> Term:
        """Arithmetic whose width matters."""
        if not a.tile and not a.text.startswith("("):
            a = Term(f"({a.text} + {self.pid.text})", a.low, a.high + self.pid.high)
        match self.rng.randrange(10):
            case 4:
                return Term(f"((({a.text}).to(tl.uint32) // 3) & 7).to(tl.int32)", 0, 7, a.tile)
            case 5:
                return Term(f"(({a.text}).to(tl.uint32) % 5).to(tl.int32)", 0, 4, a.tile)
            case 6:
                high = max(abs(a.low), abs(a.high))
                return Term(f"tl.abs({a.text})", 0, high, a.tile)
            case 7:
                return Term(f"tl.cdiv({a.text}, 3)", _quotient(a.low + 2, 3), _quotient(a.high + 2, 3), a.tile)
            case 8:
                return Term(f"tl.umulhi(({a.text}).to(tl.uint32), 1 << 30).to(tl.int32)", 0, 1 << 30, a.tile)
            case 9:
                return Term(f"(({a.text}) << 28 >> 28)", -8, 7, a.tile)
            case 0:
                return Term(f"((({a.text}) * 1073741824) >> 30)", -2, 1, a.tile)
            case 1:
                return Term(f"((({a.text}).to(tl.uint32) * 2654435769) >> 29).to(tl.int32)", 0, 7, a.tile)
            case 2:
                return Term(f"(({a.text}) * 100).to(tl.int8).to(tl.int32)", -128, 127, a.tile)
            case _:
                return Term(f"(({a.text}).to(tl.int64) * 3 + 1)", a.low * 3 + 1, a.high * 3 + 1, a.tile)

    def condition(self, scope: Scope, *, tile: bool) -> Term:
        a = self.anything(scope, 1, tile=tile)
        b = self.anything(scope, 0, tile=False)
        op = self.rng.choice(("<", "<", "<=", ">", ">=", "==", "!="))
        text = f"({a.text} {op} {b.text})"
        if not (a.tile or b.tile) and a.text.isdigit() and b.text.isdigit():
            text = f"({self.pid.text} {op} {b.text})"
        if self.chance(0.2):
            other = self.condition(scope, tile=tile)
            joined = self.rng.choice(("&", "|", "^"))
            return Term(f"({text} {joined} {other.text})", 0, 1, a.tile or b.tile or other.tile)
        return Term(text, 0, 1, a.tile or b.tile)

    # ---- where a tensor is touched -----------------------------------------------------------------------------------

    def partition(self, elems: int) -> Callable[[], Term]:
        """A way to give every (program, loop iteration, lane) its own cell of a tensor, drawn once per tensor."""
        rng, lanes = self.rng, self.lane.high + 1
        style, permutation, pids = rng.randrange(5), rng.randrange(7), rng.randrange(4)
        off = rng.choice(("", "", "", "stride", "shift", "pid", "lane")) if self.chance(0.6) else ""

        def cell() -> Term:
            pid, trips = self.pid, 1
            lane = _permuted(self.lane.text, lanes, permutation, pid.text)
            programs = pid.high + 1
            who = pid.text
            if pids == 1:
                who = f"(({who} // 2) * 2 + {who} % 2)"
            elif pids == 2:
                who, programs = f"(({who} % 2) * {(programs + 1) // 2} + {who} // 2)", 2 * ((programs + 1) // 2)
            elif pids == 3:
                who = f"({programs - 1} - {who})"
            if off == "pid":
                who = rng.choice((f"({who} // 2)", f"tl.minimum({who}, 2)", f"({who} % 3)"))
            if off == "lane":
                lane = rng.choice(
                    (f"({lane} // 2)", f"({lane} % {max(lanes - 1, 1)})", f"({lane} & {max(lanes - 2, 1)})")
                )
            for loop in self.loops[-2:]:
                trips *= loop.high + 1
                who = (
                    f"({who} * {loop.high + 1} + {loop.text})" if style != 3 else f"({who} + {programs} * {loop.text})"
                )
                programs *= loop.high + 1
            width = lanes - 1 if off == "stride" else lanes
            high = programs * lanes
            match style:
                case 1:
                    text = f"({lane} * {programs} + {who})"
                case 2:
                    text, high = f"(({who} * {width} + {lane}) * 2)", 2 * high
                case _:
                    text = f"({who} * {width} + {lane})"
            if off == "shift" and self.chance(0.5):
                text, high = f"({text} + {rng.choice((1, lanes // 2))})", high + lanes
            return Term(text, 0, high, True)

        del elems
        return cell

    def index(self, tensor: str, scope: Scope) -> Term:
        """An element index of a tile access, in bounds for the tensor."""
        spec = self.tensors[tensor]
        if self.chance(0.75):
            term = self.cells[tensor]()
        else:
            term = self.anything(scope, 2, tile=True)
        if self.chance(0.07):
            term = self.combine(term, term, scope)
        return self.inside(self.full(term), spec.elems)

    def full(self, term: Term) -> Term:
        """The same with the shape of the whole tile."""
        return term if term.tile else Term(f"({term.text} + {self.lane.text} * 0)", term.low, term.high, True)

    def inside(self, term: Term, elems: int) -> Term:
        if term.low >= 0 and term.high < elems:
            return term
        match self.rng.randrange(3):
            case 0:
                return Term(f"({term.text} & {_power_below(elems) - 1})", 0, elems - 1, term.tile)
            case 1:
                return Term(f"(({term.text} % {elems} + {elems}) % {elems})", 0, elems - 1, term.tile)
            case _:
                return Term(f"tl.minimum(tl.maximum({term.text}, 0), {elems - 1})", 0, elems - 1, term.tile)

    def place(self, tensor: str, scope: Scope, *, tile: bool) -> Term:
        if tile:
            return self.index(tensor, scope)
        elems = self.tensors[tensor].elems
        if self.chance(0.7):
            terms = [self.pid]
            for loop in self.loops[-1:]:
                high = loop.high + 1
                terms.append(Term(f"({self.pid.text} * {high} + {loop.text})", 0, (self.pid.high + 1) * high))
            return self.inside(terms[-1], elems)
        return self.inside(self.anything(scope, 2, tile=False), elems)

    # ---- statements --------------------------------------------------------------------------------------------------

    def mask(self, scope: Scope, index: Term) -> Term | None:
        if self.chance(0.5):
            return None
        match self.rng.randrange(4):
            case 0:
                return Term(f"({index.text} < n)", 0, 1, index.tile)
            case 1 if index.tile:
                return Term(f"({self.lane.text} < n)", 0, 1, True)
            case _:
                condition = self.condition(scope, tile=index.tile)
                if index.tile and not condition.tile:
                    return Term(f"({condition.text} & ({self.lane.text} >= 0))", 0, 1, True)
                return condition

    def value(self, scope: Scope, *, tile: bool) -> str:
        loaded = scope.loaded_tiles if tile else scope.loaded_scalars
        if loaded and self.chance(0.7):
            name = self.rng.choice(loaded[-2:])
            return self.rng.choice((name, f"{name} + 1", f"{name} * 2", f"{name} + {self.pid.text}"))
        if tile and self.chance(0.5):
            return self.lane.text
        return self.rng.choice(("1", self.pid.text))

    def written(self) -> str:
        return self.rng.choice(
            [t for t in self.tensors if t not in ("tab", "ok")] + (["tab"] if self.chance(0.02) else [])
        )

    def fence(self, probability: float) -> list[Node]:
        return [Node("tl.debug_barrier()")] if self.chance(probability) else []

    def store(self, scope: Scope) -> list[Node]:
        tensor, tile = self.written(), self.chance(0.85)
        index = self.place(tensor, scope, tile=tile)
        mask, value = self.mask(scope, index), self.value(scope, tile=tile)
        if self.chance(0.05):
            place = self.inside(self.place(tensor, scope, tile=False), self.tensors[tensor].elems // 8)
            return [Node(f"put_apart({tensor}, {place.text}, {self.pid.text})")]
        if self.chance(0.06):
            keep = mask.text if mask is not None else "True"
            return [Node(f"put({tensor}, {index.text}, {self.pid.text}, {keep})")]
        return [Node(f"tl.store({tensor} + {index.text}, {value}{masked(mask)})")]

    def load(self, scope: Scope) -> list[Node]:
        tensor, tile = self.rng.choice(list(self.tensors)), self.chance(0.8)
        index = self.place(tensor, scope, tile=tile)
        mask, name = self.mask(scope, index), self.fresh("v")
        other = ", other=0" if mask is not None and self.chance(0.5) else ""
        (scope.loaded_tiles if tile else scope.loaded_scalars).append(name)
        return [Node(f"{name} = tl.load({tensor} + {index.text}{masked(mask)}{other})")]

    def update(self, scope: Scope) -> list[Node]:
        """Load, change, store at the same place (mostly)."""
        tensor, tile = self.written(), self.chance(0.85)
        index = self.place(tensor, scope, tile=tile)
        mask, name, at = self.mask(scope, index), self.fresh("v"), self.fresh("i")
        shift = " + 1" if self.chance(0.08) else ""
        barrier = self.fence(0.25)
        value = self.rng.choice((f"{name} + 1", f"{name} * 2", f"{name}")) if self.chance(0.85) else "1"
        if tile and self.chance(0.12) and len(self.tile) == 1:
            value = self.rng.choice((f"tl.cumsum({name}, 0)", f"tl.sum({name}, 0) + {self.lane.text}"))
        limit = self.tensors[tensor].elems - 1
        second = f"tl.minimum({at}{shift}, {limit})" if shift else at
        return [
            Node(f"{at} = {index.text}"),
            Node(f"{name} = tl.load({tensor} + {at}{masked(mask)})"),
            *barrier,
            Node(f"tl.store({tensor} + {second}, {value}{masked(mask)})"),
        ]

    def indirect(self, scope: Scope) -> list[Node]:
        """An address read from the table of small integers."""
        name, tile = self.fresh("j"), self.chance(0.7)
        place = self.lane if tile and self.chance(0.5) else self.place("tab", scope, tile=tile)
        place = self.inside(place, self.tensors["tab"].elems)
        tensor = self.written()
        lanes = self.lane.high + 1
        nodes = [Node(f"{name} = tl.load(tab + {place.text})")]
        if tile:
            index = Term(self.rng.choice((name, f"({self.pid.text} * 64 + {name})")), 0, (self.pid.high + 1) * 64, True)
        else:
            scope.scalars.append(Term(name, 0, 63))
            index = Term(f"({name} * {lanes} + {self.lane.text})", 0, 64 * lanes, True)
        index = self.inside(index, self.tensors[tensor].elems)
        value, mask = self.value(scope, tile=True), masked(self.mask(scope, index))
        nodes.append(Node(f"tl.store({tensor} + {index.text}, {value}{mask})"))
        return nodes

    def atomic(self, scope: Scope) -> list[Node]:
        tensor = self.written()
        tile = self.chance(0.6)
        index = self.place(tensor, scope, tile=tile)
        sem = self.rng.choice(("relaxed", "relaxed", "acq_rel", "release"))
        span = self.rng.choice(("gpu", "gpu", "gpu", "sys", "cta"))
        dtype = self.tensors[tensor].dtype
        if WIDTH[dtype] < 4:
            return self.store(scope)
        options = f'sem="{sem}", scope="{span}"'
        value = f"({self.lane.text} * 0 + 1)" if tile else "1"
        if dtype.startswith("float"):
            return [Node(f"tl.atomic_add({tensor} + {index.text}, {value}.to(tl.float32), {options})")] if tile else []
        which = self.rng.choice(("add", "add", "max", "xchg", "or", "cas"))
        name = self.fresh("a")
        tail = ""
        if self.chance(0.4):
            (scope.loaded_tiles if tile else scope.loaded_scalars).append(name)
            tail = f"{name} = "
        at = f"{tensor} + {index.text}"
        if which == "cas":
            zero = f"({self.lane.text} * 0).to(tl.{dtype})" if tile else None
            if zero is None:
                return []
            return [Node(f"{tail}tl.atomic_cas({at}, {zero}, ({zero} + 1).to(tl.{dtype}), {options})")]
        return [Node(f"{tail}tl.atomic_{which}({at}, {value}{masked(self.mask(scope, index))}, {options})")]

    def branch(self, scope: Scope, depth: int) -> list[Node]:
        condition = self.condition(scope, tile=False)
        nodes = [Node(f"if {condition.text}:", self.block(scope.inner(), depth - 1))]
        if self.chance(0.4):
            nodes.append(Node("else:", self.block(scope.inner(), depth - 1)))
        return nodes

    def loop(self, scope: Scope, depth: int) -> list[Node]:
        name, nodes = self.fresh("k"), []
        trips = self.rng.choice(self.scale.trips)
        match self.rng.randrange(7):
            case 0:
                header, high = f"for {name} in range(t):", 2
            case 1:
                header, high = f"for {name} in range({self.pid.text} % 3):", 1
            case 2:
                bound = self.fresh("b")
                nodes.append(Node(f"{bound} = tl.load(tab + {self.pid.text}) % 3"))
                header, high = f"for {name} in range({bound}):", 1
            case 3:
                header, high = f"for {name} in range(0, {2 * trips}, 2):", 2 * trips - 1
            case 4:
                header, high = f"for {name} in range({trips} - 1, -1, -1):", trips - 1
            case 5:
                header, high = f"for {name} in range({self.pid.text} % 2, {trips}):", max(trips - 1, 0)
            case _:
                header, high = f"for {name} in range({trips}):", trips - 1
        inner = scope.inner()
        induction = Term(name, 0, high)
        inner.scalars.append(induction)
        self.loops.append(induction)
        body = self.walking(inner, high + 1) if self.chance(0.25) else None
        before: list[Node] = []
        if body is not None:
            before, inside = body
            inside = [*inside, *self.block(inner, depth - 1)] if self.chance(0.3) else inside
        else:
            inside = self.block(inner, depth - 1)
        self.loops.pop()
        return [*nodes, *before, Node(header, inside)]

    def walking(self, scope: Scope, trips: int) -> tuple[list[Node], list[Node]]:
        """A pointer that moves with the loop."""
        tensor, pointer = self.written(), self.fresh("p")
        lanes = self.lane.high + 1
        step = self.rng.choice((lanes, lanes, lanes * (self.pid.high + 1), 1, 0))
        start = f"{self.pid.text} * {lanes * self.rng.choice((trips, trips, 1))} + {self.lane.text}"
        high = (self.pid.high + 1) * lanes * trips + step * trips
        if high >= self.tensors[tensor].elems:
            return [], self.store(scope)
        before = [Node(f"{pointer} = {tensor} + {start}")]
        inside = [Node(f"tl.store({pointer}, {self.value(scope, tile=True)})"), Node(f"{pointer} += {step}")]
        if self.chance(0.4):
            name = self.fresh("v")
            inside[0] = Node(f"tl.store({pointer}, {name} + 1)")
            inside.insert(0, Node(f"{name} = tl.load({pointer})"))
        return before, inside

    def whiling(self, scope: Scope, depth: int) -> list[Node]:
        name = self.fresh("w")
        bound = self.rng.choice(("2", f"{self.pid.text} % 3", "t"))
        inner = scope.inner()
        induction = Term(name, 0, 2)
        inner.scalars.append(induction)
        self.loops.append(induction)
        body = [*self.block(inner, 0), Node(f"{name} += 1")]
        self.loops.pop()
        return [Node(f"{name} = 0"), Node(f"while {name} < {bound}:", body)]

    def block(self, scope: Scope, depth: int) -> list[Node]:
        nodes: list[Node] = []
        for _ in range(self.rng.choice((1, 1, 2))):
            nodes += self.statement(scope, depth)
        return nodes or [Node("pass")]

    def statement(self, scope: Scope, depth: int) -> list[Node]:
        if depth > 0 and self.chance(0.3):
            choice = self.rng.randrange(10)
            if choice < 3:
                return self.branch(scope, depth)
            return self.loop(scope, depth) if choice < 9 else self.whiling(scope, depth)
        if self.patterns and self.chance(0.33):
            return self.rng.choice(self.patterns)(self, scope)
        match self.rng.randrange(12):
            case 0 | 1 | 2 | 3:
                return self.store(scope)
            case 4 | 5:
                return self.load(scope)
            case 6 | 7:
                return self.update(scope)
            case 8:
                return self.indirect(scope)
            case 9:
                return self.atomic(scope)
            case 10:
                return [Node("tl.debug_barrier()")]
            case _:
                name = self.fresh("e")
                term = self.anything(scope, 2, tile=False)
                if term.text.lstrip("-").isdigit() or "int64" in term.text:
                    return []
                scope.scalars.append(Term(name, term.low, term.high))
                return [Node(f"{name} = {term.text}")]

    # ---- the whole ---------------------------------------------------------------------------------------------------

    def arguments(self) -> None:
        rng = self.rng
        table = [rng.randrange(64) for _ in range(64)] if self.chance(0.4) else rng.sample(range(64), 64)
        names = ("x", "y", "z")[: rng.choice((1, 1, 2, 2, 3))]
        for name in names:
            base = rng.choice([n for n in self.tensors if not self.tensors[n].base] or [""])
            if base and self.chance(0.25):
                offset = rng.choice((0, 0, 1, 8, 64))
                dtype = self.tensors[base].dtype
                self.tensors[name] = TensorSpec(dtype, self.scale.elems - offset, base, offset)
                if self.chance(0.2) and offset % 8 == 0:
                    other = rng.choice(("int8", "int16", "int32"))
                    elems = (self.scale.elems - offset) * WIDTH[dtype] // WIDTH[other]
                    self.tensors[name] = TensorSpec(other, elems, base, offset)
            else:
                self.tensors[name] = TensorSpec(rng.choice(DTYPES), self.scale.elems)
        self.tensors["tab"] = TensorSpec("int32", 64, values=tuple(table))
        self.tensors["ok"] = TensorSpec("bool", 64, values=tuple(rng.randrange(2) for _ in range(64)))
        self.scalars = {"n": rng.choice((0, 3, 5, 17, 40, 100)), "t": rng.choice((0, 1, 2, 3))}
        self.scalars["m"] = rng.choice((-1, -2, -5, -16, -64))
        self.scalars["big"] = rng.choice((1 << 33, 3 << 33, (1 << 33) + 5))

    def kernel(self, seed: int) -> Kernel:
        rng = self.rng
        self.arguments()
        grid = rng.choice(self.scale.grids)
        nodes = [Node("pid0 = tl.program_id(0)")]
        scope = Scope(
            [Term("n", 0, 100), Term("t", 0, 3), Term("pid0", 0, self.scale.programs - 1), Term("m", -64, -1)]
        )
        if rng.random() < 0.1:
            scope.scalars.append(Term("(big // 8589934592).to(tl.int32)", 1, 3))
        self.pid = Term("pid0", 0, self.scale.programs - 1)
        if len(grid) > 1:
            axis = len(grid) - 1
            nodes.append(Node(f"pid1 = tl.program_id({axis})"))
            scope.scalars.append(Term("pid1", 0, self.scale.programs - 1))
            text = rng.choice(
                (f"pid0 * tl.num_programs({axis}) + pid1", "pid1 * tl.num_programs(0) + pid0", "pid0 + pid1 * 7")
            )
            nodes.append(Node(f"pid = {text}"))
            self.pid = Term("pid", 0, 2 * self.scale.programs - 1)
            scope.scalars.append(self.pid)
        if rng.random() < 0.2:
            nodes.append(Node("progs = tl.num_programs(0)"))
            scope.scalars.append(Term("progs", 1, self.scale.programs))
        self.lanes(nodes, scope)
        for tensor, spec in self.tensors.items():
            self.cells[tensor] = self.partition(spec.elems)
        if rng.random() < 0.12:
            nodes.append(Node(f"if {self.condition(scope, tile=False).text}:", [Node("return")]))
        for _ in range(rng.choice((1, 2, 2, 3, 4))):
            nodes += self.statement(scope, 2)
            if rng.random() < 0.05:
                nodes.append(Node(f"if {self.condition(scope, tile=False).text}:", [Node("return")]))
        num_warps = rng.choice((1, 1, 1, 2, 4, 8))
        return Kernel(seed, nodes, self.tensors, self.scalars, grid, num_warps)

    def lanes(self, nodes: list[Node], scope: Scope) -> None:
        if self.chance(0.75):
            size = self.rng.choice(self.scale.lanes)
            self.tile = (size,)
            nodes.append(Node(f"lane = tl.arange(0, {size})"))
            self.lane = Term("lane", 0, size - 1, True)
            return
        rows, columns = self.rng.choice(((2, 4), (4, 4), (4, 8), (8, 4), (8, 8)))
        self.tile = (rows, columns)
        nodes.append(Node(f"r = tl.arange(0, {rows})[:, None]"))
        nodes.append(Node(f"c = tl.arange(0, {columns})[None, :]"))
        text = self.rng.choice((f"(r * {columns} + c)", f"(c * {rows} + r)"))
        self.lane = Term(text, 0, rows * columns - 1, True)


def constant(value: int) -> tuple[str, int, int]:
    return str(value), value, value


def _quotient(a: int, k: int) -> int:
    return a // k if a >= 0 else -(-a // k)


def _power_below(elems: int) -> int:
    return 1 << (elems.bit_length() - 1)


def _permuted(lane: str, lanes: int, which: int, pid: str) -> str:
    match which:
        case 1:
            return f"({lanes - 1} - {lane})"
        case 2:
            return f"({lane} ^ {lanes // 2 + 1 if lanes > 2 else 1})"
        case 3:
            return f"(({lane} * 3) % {lanes})"
        case 4:
            return f"(({lane} + {pid}) % {lanes})"
        case 5:
            return f"(({lane} // 2) + ({lane} % 2) * {lanes // 2})"
        case _:
            return lane


def masked(mask: Term | None) -> str:
    return "" if mask is None else f", mask={mask.text}"
