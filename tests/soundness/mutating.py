"""Mutants of a corpus kernel: one protection taken away at a time, in the source text of the kernel functions."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Edit = Callable[[ast.AST], ast.AST | None]
"""The replacement of a node, or None where the mutation does not apply."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """`operator` applied at its `number`-th place, on `line` of the original text."""

    operator: str
    number: int
    line: int
    source: str

    @property
    def name(self) -> str:
        return f"{self.operator}-{self.number}"


def mutants(text: str) -> Iterator[Mutant]:
    """Every operator at every place it applies to, one at a time."""
    for operator, edit in OPERATORS.items():
        places = [n for n in _kernel_nodes(ast.parse(text)) if edit(n) is not None]
        for number, place in enumerate(places):
            assert isinstance(place, ast.expr | ast.stmt)
            tree = _Replace(edit, number).visit(ast.parse(text))
            source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            needed = sorted(name for name in SPLIT if f"{name}(" in source)
            yield Mutant(operator, number, place.lineno, source + "".join(SPLIT[name] for name in needed))


def _kernel_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield from ast.walk(node)


class _Replace(ast.NodeTransformer):
    """Edits the place-th node, in the order of `ast.walk` over the kernels."""

    def __init__(self, edit: Edit, place: int) -> None:
        self.edit = edit
        self.place = place
        self.target: ast.AST | None = None

    def visit_Module(self, node: ast.Module) -> ast.AST:
        fitting = [n for n in _kernel_nodes(node) if self.edit(n) is not None]
        self.target = fitting[self.place]
        return self.generic_visit(node)

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.target:
            new = self.edit(node)
            assert new is not None
            return new
        visited: ast.AST = super().visit(node)
        return visited


ATOMICS = {
    "atomic_add": "old + {0}",
    "atomic_max": "tl.maximum(old, {0})",
    "atomic_min": "tl.minimum(old, {0})",
    "atomic_and": "old & {0}",
    "atomic_or": "old | {0}",
    "atomic_xor": "old ^ {0}",
    "atomic_xchg": "{0}",
    "atomic_cas": "tl.where(old == {0}, {1}, old)",
}
"""What each leaves behind, of what it found and its operands."""


def _split(name: str, new: str, *, masked: bool) -> str:
    operands = ["a", "b"][: 2 if "{1}" in new else 1]
    mask = ", mask=keep" if masked else ""
    parameters = ", ".join(["pointer", *operands, *(["keep"] if masked else [])])
    return f"""

@triton.jit
def {name}({parameters}):
    old = tl.load(pointer{mask})
    tl.store(pointer, {new.format(*operands)}{mask})
    return old
"""


SPLIT = {
    name: _split(name, new, masked=masked)
    for atomic, new in ATOMICS.items()
    for masked, name in ((False, f"split_{atomic}"), (True, f"split_masked_{atomic}"))
}
"""Functions that do what an atomic does by a load, an operation and a store."""


def _called(node: ast.AST, *names: str) -> ast.Call | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
        return node
    return None


def _with_keywords(call: ast.Call, keywords: list[ast.keyword]) -> ast.Call:
    return ast.Call(func=call.func, args=call.args, keywords=keywords)


def drop_mask(node: ast.AST) -> ast.AST | None:
    call = _called(node, "load", "store", *ATOMICS)
    if call is None or not any(k.arg == "mask" for k in call.keywords):
        return None
    return _with_keywords(call, [k for k in call.keywords if k.arg not in ("mask", "other")])


def halve_stride(node: ast.AST) -> ast.AST | None:
    """`p * BLOCK` becomes `p * (BLOCK // 2)`, `pointer += BLOCK` advances by half of it, a loop takes half its steps."""
    match node:
        case ast.BinOp(left, ast.Mult(), ast.Constant() | ast.Name() as right) if _stride(right):
            if isinstance(right, ast.Name) and isinstance(left, ast.Constant) and _stride(left):
                return ast.BinOp(_half(left), ast.Mult(), right)
            return ast.BinOp(left, ast.Mult(), _half(right))
        case ast.BinOp(left, ast.Mult(), right) if _stride(left):
            return ast.BinOp(_half(left), ast.Mult(), right)
        case ast.AugAssign(target, ast.Add() | ast.Sub() as op, value) if _stride(value):
            return ast.AugAssign(target, op, _half(value))
        case ast.Call(ast.Name("range"), [start, stop, step]):
            rounded_up = ast.BinOp(step, ast.Add(), ast.Constant(1))
            return ast.Call(ast.Name("range", ast.Load()), [start, stop, _half(rounded_up)], [])
    return None


def _stride(node: ast.AST) -> bool:
    match node:
        case ast.Name():
            return True
        case ast.Constant(int() as value):
            return value >= 2
    return False


def _half(node: ast.expr) -> ast.expr:
    return ast.BinOp(node, ast.FloorDiv(), ast.Constant(2))


def drop_barrier(node: ast.AST) -> ast.AST | None:
    is_barrier = isinstance(node, ast.Expr) and _called(node.value, "debug_barrier") is not None
    return ast.Pass() if is_barrier else None


def split_atomic(node: ast.AST) -> ast.AST | None:
    """A load, the operation and a store."""
    call = _called(node, *ATOMICS)
    if call is None or not isinstance(call.func, ast.Attribute):
        return None
    masks = [k.value for k in call.keywords if k.arg == "mask"]
    name = f"split_masked_{call.func.attr}" if masks else f"split_{call.func.attr}"
    return ast.Call(ast.Name(name, ast.Load()), [*call.args, *masks], [])


def pin_program(node: ast.AST) -> ast.AST | None:
    """The program takes itself for program 0 (of what the multiplication leaves a value of the same type)."""
    call = _called(node, "program_id")
    return None if call is None else ast.BinOp(call, ast.Mult(), ast.Constant(0))


def _reordered(before: tuple[str, ...], after: dict[str, str]) -> Edit:
    """`after` says what becomes of each ordering in `before`."""

    def edit(node: ast.AST) -> ast.AST | None:
        call = _called(node, *ATOMICS)
        given = None if call is None else _keyword(call, "sem", "acq_rel")
        if call is None or given not in before:
            return None
        rest = [k for k in call.keywords if k.arg != "sem"]
        return _with_keywords(call, [*rest, ast.keyword("sem", ast.Constant(after[given]))])

    return edit


def narrow_scope(node: ast.AST) -> ast.AST | None:
    call = _called(node, *ATOMICS)
    if call is None or _keyword(call, "scope", "gpu") == "cta":
        return None
    rest = [k for k in call.keywords if k.arg != "scope"]
    return _with_keywords(call, [*rest, ast.keyword("scope", ast.Constant("cta"))])


def _keyword(call: ast.Call, name: str, default: str) -> str:
    given = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    found = given.get(name, default)
    assert isinstance(found, str)
    return found


OPERATORS: dict[str, Edit] = {
    "drop-mask": drop_mask,
    "halve-stride": halve_stride,
    "drop-barrier": drop_barrier,
    "split-atomic": split_atomic,
    "pin-program": pin_program,
    "weaken-acquire": _reordered(("acquire", "acq_rel"), {"acquire": "relaxed", "acq_rel": "release"}),
    "weaken-release": _reordered(("release", "acq_rel"), {"release": "relaxed", "acq_rel": "acquire"}),
    "weaken-both": _reordered(("acq_rel",), {"acq_rel": "relaxed"}),
    "narrow-scope": narrow_scope,
}


def write_mutant(folder: Path, stem: str, source: str) -> Path:
    """A real file, as `triton.jit` needs one."""
    path = folder / f"{stem}.py".replace("-", "_")
    path.write_text(source)
    return path
