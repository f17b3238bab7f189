"""More shapes real kernels have: rows and tiles of matrices, descriptors, products, lanes that change places."""

from __future__ import annotations

from grammar import WIDTH, Generator, Pattern, Scope
from kernels import Node, Term

ROWS, COLUMNS = 8, 16


def _room(g: Generator, tensor: str) -> int:
    return g.tensors[tensor].elems


def _lanes(g: Generator) -> int:
    return g.lane.high + 1


def rows_of_n(g: Generator, scope: Scope) -> list[Node]:
    """A row for each program, as long as an argument says."""
    tensor, lanes, column = g.written(), _lanes(g), g.fresh("c")
    pitch = g.rng.choice(("n", "n", "n", "(n + 1)", "n * 2", "t"))
    limit = g.rng.choice(("n", "n", "n", "n + 1", "n - 1"))
    if (g.pid.high + 1) * 202 + lanes >= _room(g, tensor):
        return []
    at = f"{g.pid.text} * {pitch} + {column} + {g.lane.text}"
    mask = f"mask={column} + {g.lane.text} < {limit}"
    body = [Node(f"tl.store({tensor} + {at}, {g.value(scope, tile=True)}, {mask})")]
    if g.chance(0.3):
        name = g.fresh("v")
        body = [
            Node(f"{name} = tl.load({tensor} + {at}, {mask})"),
            Node(f"tl.store({tensor} + {at}, {name} + 1, {mask})"),
        ]
    if g.chance(0.5):
        return [Node(f"{column} = 0"), *body]
    return [Node(f"for {column} in range(0, n, {lanes}):", body)]


def grouped(g: Generator, scope: Scope) -> list[Node]:
    """The program id, taken apart into a row and a column of tiles, a few rows at a time."""
    tensor, lanes = g.written(), _lanes(g)
    width, first, size, row, column = (g.fresh(stem) for stem in ("w", "f", "s", "r", "c"))
    rows, columns = g.rng.choice(("3", "5", "(t + 2)")), g.rng.choice(("2", "3", "(t + 1)"))
    group = g.rng.choice((1, 2, 3))
    who = g.pid.text
    lines = [
        f"{width} = {group} * {columns}",
        f"{first} = {who} // {width} * {group}",
        f"{size} = tl.maximum(tl.minimum({rows} - {first}, {group}), 1)",
        f"{row} = {first} + ({who} % {width}) % {size}",
        f"{column} = ({who} % {width}) // {size}",
    ]
    if g.chance(0.2):
        lines[2] = f"{size} = {group}"
    index = Term(f"(({row} * {columns} + {column}) * {lanes} + {g.lane.text})", 0, (g.pid.high + 4) * 4 * lanes, True)
    index = g.inside(index, _room(g, tensor))
    store = Node(f"tl.store({tensor} + {index.text}, {g.value(scope, tile=True)})")
    if g.chance(0.6):
        store = Node(f"if {who} < {rows} * {columns}:", [store])
    return [*map(Node, lines), store]


def product(g: Generator, scope: Scope) -> list[Node]:
    """A tile of 16 by 16 times itself, stored where it came from, or not quite."""
    floats = [t for t, s in g.tensors.items() if s.dtype in ("float32", "float16") and s.elems >= 2048]
    if not floats or g.pid.high > 7:
        return []
    tensor, at, name, made = g.rng.choice(floats), g.fresh("i"), g.fresh("v"), g.fresh("d")
    size = g.rng.choice((256, 256, 256, 240))
    second = g.rng.choice((at, at, f"tl.trans({at})"))
    base = f"({g.pid.text} % 8) * {size}"
    return [
        Node(f"{at} = {base} + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]"),
        Node(f"{name} = tl.load({tensor} + {at})"),
        Node(f"{made} = tl.dot({name}, {name})"),
        *g.fence(0.5),
        Node(f"tl.store({tensor} + {second}, {made})"),
    ]


def summed_rows(g: Generator, scope: Scope) -> list[Node]:
    """A tile is reduced along one axis, and the results stored beside each other."""
    tensor, target, at, name = g.written(), g.written(), g.fresh("i"), g.fresh("v")
    if (g.pid.high + 1) * ROWS * COLUMNS > min(_room(g, tensor), _room(g, target)):
        return []
    axis = g.rng.choice((0, 1))
    kept = (ROWS, COLUMNS)[1 - axis]
    function = g.rng.choice(("sum", "max", "min"))
    spread = g.rng.choice((kept, kept, kept, kept // 2, ROWS * COLUMNS))
    rows, columns = f"tl.arange(0, {ROWS})[:, None]", f"tl.arange(0, {COLUMNS})[None, :]"
    return [
        Node(f"{at} = {g.pid.text} * {ROWS * COLUMNS} + {rows} * {COLUMNS} + {columns}"),
        Node(f"{name} = tl.{function}(tl.load({tensor} + {at}), {axis})"),
        *g.fence(0.3),
        Node(f"tl.store({target} + {g.pid.text} * {spread} + tl.arange(0, {kept}), {name})"),
    ]


def described(g: Generator, scope: Scope) -> list[Node]:
    """Blocks of a matrix through a descriptor; what sticks out is left alone."""
    tensor, made = g.written(), g.fresh("d")
    width = WIDTH[g.tensors[tensor].dtype]
    columns = max(16, 16 // width)
    rows = g.rng.choice((4, 8))
    height = _room(g, tensor) // columns
    if g.tensors[tensor].base or height < rows:
        return []
    high = g.rng.choice((height, height, 13, "n"))
    block = f"[{rows}, {columns}]"
    make = f"{made} = tl.make_tensor_descriptor({tensor}, [{high}, {columns}], [{columns}, 1], {block})"
    step = g.rng.choice((rows, rows, rows, rows - 1))
    at = f"[{g.pid.text} * {step}, {g.rng.choice((0, 0, 0, columns // 2))}]"
    name = g.fresh("v")
    if g.chance(0.4):
        return [
            Node(make),
            Node(f"{name} = {made}.load({at})"),
            *g.fence(0.3),
            Node(f"{made}.store({at}, {name})"),
        ]
    return [Node(make), Node(f"{made}.store({at}, tl.zeros({block}, {tensor}.dtype.element_ty))")]


def block_pointer(g: Generator, scope: Scope) -> list[Node]:
    """A pointer to a block that a loop advances."""
    tensor, made, loop = g.written(), g.fresh("b"), g.fresh("k")
    trips, rows, columns = g.rng.choice((1, 2, 3)), 4, g.rng.choice((4, 8))
    pitch = columns * trips
    height = (g.pid.high + 1) * rows
    if height * pitch >= _room(g, tensor):
        return []
    cut = g.rng.choice((height, height, 10))
    pace = g.rng.choice((rows, rows, rows, rows - 1))
    stride = g.rng.choice((pitch, pitch, pitch - 1))
    make = (
        f"{made} = tl.make_block_ptr({tensor}, ({cut}, {pitch}), ({stride}, 1), ({g.pid.text} * {pace}, 0), "
        f"({rows}, {columns}), (1, 0))"
    )
    value = f"tl.zeros(({rows}, {columns}), {tensor}.dtype.element_ty)"
    body = [
        Node(f"tl.store({made}, {value}, boundary_check=(0, 1))"),
        Node(f"{made} = tl.advance({made}, (0, {g.rng.choice((columns, columns, 0))}))"),
    ]
    return [Node(make), Node(f"for {loop} in range({trips}):", body)]


def shuffled(g: Generator, scope: Scope) -> list[Node]:
    """Loaded values change their lanes before they are stored."""
    if len(g.tile) != 1:
        return []
    tensor, at, name = g.written(), g.fresh("i"), g.fresh("v")
    index, lanes = g.index(tensor, scope), _lanes(g)
    change = g.rng.choice(
        (
            f"tl.flip({name})",
            f"tl.sort({name})",
            f"tl.gather({name}, ({g.lane.text} + 1) % {lanes}, 0)",
            f"tl.gather({name}, {g.lane.text}, 0)",
            f"tl.cumsum({name}, 0)",
            f"tl.reshape(tl.trans(tl.reshape({name}, (2, {lanes // 2}))), ({lanes},))",
        )
    )
    return [
        Node(f"{at} = {index.text}"),
        Node(f"{name} = tl.load({tensor} + {at})"),
        Node(f"{name} = {change}"),
        *g.fence(0.3),
        Node(f"tl.store({tensor} + {at}, {name})"),
    ]


def rows_and_columns(g: Generator, scope: Scope) -> list[Node]:
    """One loop inside another, each moving a pointer."""
    tensor, lanes = g.written(), _lanes(g)
    row, cell, i, j = (g.fresh(stem) for stem in ("p", "q", "i", "j"))
    outer, inner = g.rng.choice(("2", "3", "t")), g.rng.choice(("2", "3", "t"))
    if (g.pid.high + 1) * 9 * lanes + 9 * lanes >= _room(g, tensor):
        return []
    pace = g.rng.choice((lanes, lanes, lanes // 2))
    long = g.rng.choice((3 * lanes, 3 * lanes, 2 * lanes))
    inside = [Node(f"tl.store({cell}, {g.value(scope, tile=True)})"), Node(f"{cell} += {pace}")]
    if g.chance(0.3):
        inside += g.fence(1.0)
    return [
        Node(f"{row} = {tensor} + {g.pid.text} * {9 * lanes} + {g.lane.text}"),
        Node(
            f"for {i} in range({outer}):",
            [Node(f"{cell} = {row}"), Node(f"for {j} in range({inner}):", inside), Node(f"{row} += {long}")],
        ),
    ]


def ragged(g: Generator, scope: Scope) -> list[Node]:
    """Each program's piece begins and ends where a table says."""
    tensor, first, last, k = g.written(), g.fresh("a"), g.fresh("b"), g.fresh("k")
    lanes = _lanes(g)
    if 64 * lanes > _room(g, tensor):
        return []
    where = f"tab + {g.pid.text}"
    end = g.rng.choice((f"tl.load({where} + 1)", f"{first} + 1", f"{first} + 2"))
    nodes = [Node(f"{first} = tl.load({where})"), Node(f"{last} = {end}")]
    if g.chance(0.5):
        index = g.rng.choice((f"{first} * {lanes} + {g.lane.text}", f"{first} + {g.lane.text}"))
        return [*nodes, Node(f"tl.store({tensor} + {index}, 1, mask={g.lane.text} < {last} - {first})")]
    body = [Node(f"tl.store({tensor} + {k} * {lanes} + {g.lane.text}, {k})")]
    return [*nodes, Node(f"for {k} in range({first}, tl.minimum({last}, {first} + 4)):", body)]


def far_away(g: Generator, scope: Scope) -> list[Node]:
    """An offset computed in 64 bits, or in 32 that must not wrap."""
    tensor, name, lanes = g.written(), g.fresh("o"), _lanes(g)
    if (g.pid.high + 1) * lanes >= _room(g, tensor):
        return []
    wide = g.rng.choice((".to(tl.int64)", ".to(tl.int64)", ""))
    shift = g.rng.choice((33, 28, 20))
    return [
        Node(f"{name} = (({g.pid.text} + 0){wide} * (1 << {shift})) >> {shift}"),
        Node(f"tl.store({tensor} + {name} * {lanes} + {g.lane.text}, 1)"),
    ]


def stepping(g: Generator, scope: Scope) -> list[Node]:
    """A loop whose step is no constant."""
    tensor, loop, lanes = g.written(), g.fresh("k"), _lanes(g)
    step = g.rng.choice((f"{g.pid.text} + 1", "t + 1", "tl.num_programs(0)"))
    start = g.rng.choice((g.pid.text, "0"))
    index = g.rng.choice((f"{loop} * {lanes}", f"({g.pid.text} * 6 + {loop}) * {lanes}"))
    if ((g.pid.high + 1) * 6 + 6) * lanes >= _room(g, tensor):
        return []
    store = Node(f"tl.store({tensor} + {index} + {g.lane.text}, {loop})")
    return [Node(f"for {loop} in range({start}, {g.rng.choice((5, 6))}, {step}):", [store, *g.fence(0.2)])]


TILED_PATTERNS: tuple[Pattern, ...] = (
    rows_of_n,
    rows_of_n,
    grouped,
    grouped,
    product,
    summed_rows,
    described,
    described,
    block_pointer,
    shuffled,
    rows_and_columns,
    ragged,
    far_away,
    stepping,
)
