"""Statements that belong together: the shapes real kernels have, each with a chance of being slightly wrong."""

from __future__ import annotations

from grammar import Generator, Pattern, Scope, masked
from kernels import Node, Term


def _lanes(g: Generator) -> int:
    return g.lane.high + 1


def merged_index(g: Generator, scope: Scope) -> list[Node]:
    """A variable that each branch sets to something else."""
    name = g.fresh("m")
    condition = g.condition(scope, tile=False)
    offsets = [g.rng.choice((0, 1, 2, 7)) for _ in range(2)]
    nodes = [
        Node(f"if {condition.text}:", [Node(f"{name} = {g.pid.text} + {offsets[0]}")]),
        Node("else:", [Node(f"{name} = {g.pid.text} * 2 + {offsets[1]}")]),
    ]
    scope.scalars.append(Term(name, 0, 2 * g.pid.high + 7))
    tensor = g.written()
    index = g.inside(
        Term(f"({name} * {_lanes(g)} + {g.lane.text})", 0, (2 * g.pid.high + 8) * _lanes(g), True), g.scale.elems
    )
    if g.chance(0.5):
        index = g.inside(index, g.tensors[tensor].elems)
        nodes.append(Node(f"tl.store({tensor} + tl.minimum({index.text}, {g.tensors[tensor].elems - 1}), 1)"))
    return nodes


def chosen_pointer(g: Generator, scope: Scope) -> list[Node]:
    """A pointer to one of two tensors, by branch or lane by lane."""
    own = [t for t in g.tensors if t not in ("tab", "ok")]
    one, other = g.rng.choice(own), g.rng.choice(own)
    if g.tensors[one].dtype != g.tensors[other].dtype:
        other = one
    index = g.index(one if g.tensors[one].elems < g.tensors[other].elems else other, scope)
    if g.chance(0.5):
        name, condition = g.fresh("q"), g.condition(scope, tile=False)
        return [
            Node(f"if {condition.text}:", [Node(f"{name} = {one} + {g.rng.choice((0, 0, 1))}")]),
            Node("else:", [Node(f"{name} = {other} + 0")]),
            Node(f"tl.store({name} + {_less(g, index, 1)}, {g.value(scope, tile=True)})"),
        ]
    condition = g.full(g.condition(scope, tile=True))
    pointer = f"tl.where({condition.text} != 0, {one} + {index.text}, {other} + {index.text})"
    return [Node(f"tl.store({pointer}, {g.value(scope, tile=True)})")]


def _less(g: Generator, index: Term, by: int) -> str:
    """The index, leaving `by` elements free at the end of the smallest view."""
    return (
        f"tl.minimum({index.text}, {g.scale.elems // 8 - 1 - by})"
        if index.high >= g.scale.elems // 8 - by
        else index.text
    )


def prefetch(g: Generator, scope: Scope) -> list[Node]:
    """The next round's element is loaded before this round's is used."""
    tensor, name, loop = g.written(), g.fresh("v"), g.fresh("k")
    trips = g.rng.choice(g.scale.trips)
    high = g.pid.high * (trips + 1) * _lanes(g) + (trips + 2) * _lanes(g)
    if high >= g.tensors[tensor].elems:
        return []
    base = f"{tensor} + ({g.pid.text} * {trips + 1}"
    lane = g.lane.text
    body = [
        Node(f"tl.store({base} + {loop}) * {_lanes(g)} + {lane}, {name} + 1)"),
        Node(f"{name} = tl.load({base} + {loop} + 1) * {_lanes(g)} + {lane})"),
    ]
    if g.chance(0.2):
        body.reverse()
    return [Node(f"{name} = tl.load({base}) * {_lanes(g)} + {lane})"), Node(f"for {loop} in range({trips}):", body)]


def growing_offset(g: Generator, scope: Scope) -> list[Node]:
    """An integer carried by the loop leads to the address."""
    tensor, name, loop = g.written(), g.fresh("o"), g.fresh("k")
    trips, lanes = g.rng.choice(g.scale.trips), _lanes(g)
    step = g.rng.choice((f"{name} + {lanes}", f"{name} * 2 + {lanes}", f"({name} ^ {lanes})", f"{name} + {lanes} * t"))
    start = g.rng.choice((f"{g.pid.text} * {lanes * trips}", f"{g.pid.text} * {lanes}"))
    mask = g.tensors[tensor].elems
    body = [
        Node(
            f"tl.store({tensor} + ({name} + {g.lane.text}), {g.value(scope, tile=True)}, "
            f"mask={name} + {g.lane.text} < {mask})"
        ),
        Node(f"{name} = {step}"),
    ]
    return [Node(f"{name} = {start}"), Node(f"for {loop} in range({trips}):", body)]


def reduced_scalar(g: Generator, scope: Scope) -> list[Node]:
    """An integer made of a whole tile of known contents."""
    if len(g.tile) != 1 or _lanes(g) > 64:
        return []
    name = g.fresh("s")
    function = g.rng.choice(("sum", "max", "min", "xor_sum"))
    scope.scalars.append(Term(name, 0, 7))
    return [Node(f"{name} = tl.{function}(tl.load(tab + {g.lane.text}), 0) % 8")]


def packed_by_flags(g: Generator, scope: Scope) -> list[Node]:
    """Kept lanes move together by a running count."""
    if len(g.tile) != 1 or _lanes(g) > 64:
        return []
    tensor, flag, place = g.written(), g.fresh("f"), g.fresh("c")
    reverse = ", reverse=True" if g.chance(0.2) else ""
    mask = "" if g.chance(0.3) else f", mask={flag} != 0"
    lanes = _lanes(g)
    return [
        Node(f"{flag} = tl.load(tab + {g.lane.text}) % 2"),
        Node(f"{place} = tl.cumsum({flag}, 0{reverse}) - {g.rng.choice((flag, flag, '0'))}"),
        Node(
            f"tl.store({tensor} + tl.minimum({g.pid.text} * {lanes} + {place}, {g.scale.elems // 8 - 1}), {g.lane.text}{mask})"
        ),
    ]


def reshaped(g: Generator, scope: Scope) -> list[Node]:
    """Addresses and values pass through the same change of shape, or not quite the same."""
    tensor, at, name = g.written(), g.fresh("i"), g.fresh("v")
    index = g.index(tensor, scope)
    lanes = _lanes(g)
    if len(g.tile) == 2:
        change = "tl.trans({})"
        wrong = "{}" if g.tile[0] == g.tile[1] else change
    else:
        change = f"tl.reshape({{}}, (2, {lanes // 2}))"
        wrong = f"tl.trans(tl.reshape({{}}, ({lanes // 2}, 2)))"
    second = wrong if g.chance(0.25) else change
    return [
        Node(f"{at} = {index.text}"),
        Node(f"{name} = tl.load({tensor} + {at})"),
        *g.fence(0.2),
        Node(f"tl.store({tensor} + {change.format(at)}, {second.format(name)})"),
    ]


def interleaved(g: Generator, scope: Scope) -> list[Node]:
    """Two halves side by side."""
    if len(g.tile) != 1:
        return []
    tensor, lanes = g.written(), _lanes(g)
    second = g.rng.choice((f"{g.lane.text} + {lanes}", f"{g.lane.text} + {lanes}", f"{g.lane.text} + {lanes - 1}"))
    function = g.rng.choice(("interleave", "join"))
    index = f"{g.pid.text} * {2 * lanes} + tl.{function}({g.lane.text}, {second})"
    if 2 * lanes * (g.pid.high + 1) >= g.tensors[tensor].elems:
        return []
    return [Node(f"tl.store({tensor} + {index}, 1)")]


def flagged(g: Generator, scope: Scope) -> list[Node]:
    """A mask of booleans from memory."""
    tensor = g.written()
    index = g.index(tensor, scope)
    keep = f"tl.load(ok + ({g.lane.text} & 63))"
    if g.chance(0.3):
        keep = f"~{keep}"
    return [Node(f"tl.store({tensor} + {index.text}, {g.value(scope, tile=True)}, mask={keep})")]


def assumed(g: Generator, scope: Scope) -> list[Node]:
    """A promise the launch keeps."""
    return [Node(f"tl.assume({g.rng.choice(('n >= 0', f'{g.pid.text} >= 0', 'm < 0', 'n <= 100'))})")]


def by_bytes(g: Generator, scope: Scope) -> list[Node]:
    """The same memory through a pointer to bytes."""
    tensor = g.written()
    index = g.index(tensor, scope)
    byte = g.rng.choice((0, 0, 1))
    return [Node(f"tl.store(({tensor} + {index.text}).to(tl.pointer_type(tl.int8), bitcast=True) + {byte} * 0, 1)")]


def grid_stride(g: Generator, scope: Scope) -> list[Node]:
    """Programs take tiles in turn."""
    tensor, loop, lanes = g.written(), g.fresh("g"), _lanes(g)
    total = g.rng.choice((3, 4, 5))
    step = g.rng.choice(("tl.num_programs(0)", "tl.num_programs(0)", "2"))
    if total * lanes >= g.tensors[tensor].elems:
        return []
    index = Term(loop, 0, total)
    inner = scope.inner()
    inner.scalars.append(index)
    store = Node(f"tl.store({tensor} + {loop} * {lanes} + {g.lane.text}, {g.value(inner, tile=True)})")
    load = [Node(f"{g.fresh('v')} = tl.load({tensor} + {loop} * {lanes} + {g.lane.text})")] if g.chance(0.3) else []
    return [Node(f"for {loop} in range(pid0, {total}, {step}):", [*load, store])]


def searching(g: Generator, scope: Scope) -> list[Node]:
    """A loop that ends where the table says."""
    name = g.fresh("w")
    scope.scalars.append(Term(name, 0, 5))
    condition = f"({name} < 5) & (tl.load(tab + {name}) > {g.rng.choice((8, 32))})"
    return [Node(f"{name} = 0"), Node(f"while {condition}:", [Node(f"{name} += 1")])]


def unrolled(g: Generator, scope: Scope) -> list[Node]:
    """A loop the compiler unrolls."""
    tensor, loop, lanes = g.written(), g.fresh("u"), _lanes(g)
    trips = g.rng.choice((2, 3))
    if (g.pid.high + 1) * trips * lanes >= g.tensors[tensor].elems:
        return []
    scale = g.rng.choice((trips, trips, trips - 1))
    index = f"({g.pid.text} * {scale} + {loop}) * {lanes} + {g.lane.text}"
    return [Node(f"for {loop} in tl.static_range({trips}):", [Node(f"tl.store({tensor} + {index}, {loop})")])]


def called(g: Generator, scope: Scope) -> list[Node]:
    """An index computed by a function of its own."""
    tensor, name, lanes = g.written(), g.fresh("h"), _lanes(g)
    function = g.rng.choice(("slot", "slot_apart"))
    scope.scalars.append(Term(name, 0, 2 * PROGRAM_LIMIT))
    index = g.inside(
        Term(f"({name} * {lanes} + {g.lane.text})", 0, 2 * PROGRAM_LIMIT * lanes, True), g.tensors[tensor].elems
    )
    return [
        Node(f"{name} = {function}({g.pid.text}, {g.rng.choice((1, 2, 3))})"),
        Node(f"tl.store({tensor} + {index.text}, {g.value(scope, tile=True)}{masked(g.mask(scope, index))})"),
    ]


PROGRAM_LIMIT = 16

PATTERNS: tuple[Pattern, ...] = (
    merged_index,
    chosen_pointer,
    prefetch,
    growing_offset,
    reduced_scalar,
    packed_by_flags,
    reshaped,
    interleaved,
    flagged,
    assumed,
    by_bytes,
    grid_stride,
    searching,
    unrolled,
    called,
)
