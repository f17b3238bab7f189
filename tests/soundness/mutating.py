"""Mutants of a corpus kernel: one protection taken away at a time, in the source text of the kernel function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

Edit = Callable[[ast.AST], ast.AST | None]
"""The replacement of a node, or None where the mutation does not apply."""


def mutants(text: str) -> Iterator[tuple[str, int, str]]:
    """(name of the mutation, which occurrence, source text of the mutant), every place it applies to on its own."""
    for name, edit in MUTATIONS.items():
        for number, source in enumerate(_each(text, edit)):
            yield name, number, source


def _each(text: str, edit: Edit) -> Iterator[str]:
    places = len([n for n in _kernel_nodes(ast.parse(text)) if edit(n) is not None])
    for place in range(places):
        tree = ast.parse(text)
        yield ast.unparse(ast.fix_missing_locations(_Replace(edit, place).visit(tree))) + "\n"


def _kernel_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            yield from ast.walk(node)


class _Replace(ast.NodeTransformer):
    """Edits the place-th node, in the order of `ast.walk` over the kernel."""

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


def _called(node: ast.AST, *names: str) -> ast.Call | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
        return node
    return None


def _with_keywords(call: ast.Call, keywords: list[ast.keyword]) -> ast.Call:
    return ast.Call(func=call.func, args=call.args, keywords=keywords)


def drop_mask(node: ast.AST) -> ast.AST | None:
    call = _called(node, "load", "store", "atomic_add", "atomic_max", "atomic_xchg")
    if call is None or not any(k.arg == "mask" for k in call.keywords):
        return None
    return _with_keywords(call, [k for k in call.keywords if k.arg not in ("mask", "other")])


def halve_stride(node: ast.AST) -> ast.AST | None:
    """A product with a name loses half of it: `p * BLOCK` becomes `p * (BLOCK // 2)`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name)):
        return None
    half = ast.BinOp(node.right, ast.FloorDiv(), ast.Constant(2))
    return ast.BinOp(node.left, ast.Mult(), half)


def drop_barrier(node: ast.AST) -> ast.AST | None:
    is_barrier = isinstance(node, ast.Expr) and _called(node.value, "debug_barrier") is not None
    return ast.Pass() if is_barrier else None


def split_atomic(node: ast.AST) -> ast.AST | None:
    """An unused atomic addition becomes a load, an addition and a store."""
    call = _called(node.value, "atomic_add") if isinstance(node, ast.Expr) else None
    if call is None:
        return None
    masks = [k for k in call.keywords if k.arg == "mask"]
    module = ast.Name("tl", ast.Load())
    load = ast.Call(ast.Attribute(module, "load", ast.Load()), [call.args[0]], masks)
    total = ast.BinOp(load, ast.Add(), call.args[1])
    return ast.Expr(ast.Call(ast.Attribute(module, "store", ast.Load()), [call.args[0], total], masks))


def pin_program(node: ast.AST) -> ast.AST | None:
    """The program takes itself for program 0 (of what the multiplication leaves a value of the same type)."""
    call = _called(node, "program_id")
    return None if call is None else ast.BinOp(call, ast.Mult(), ast.Constant(0))


def _weaker(node: ast.AST, before: str, after: str) -> ast.AST | None:
    call = _called(node, "atomic_add", "atomic_xchg", "atomic_cas", "atomic_max")
    if call is None:
        return None
    given = {k.arg: k.value.value for k in call.keywords if isinstance(k.value, ast.Constant)}
    if given.get("sem", "acq_rel") != before:
        return None
    rest = [k for k in call.keywords if k.arg != "sem"]
    return _with_keywords(call, [*rest, ast.keyword("sem", ast.Constant(after))])


MUTATIONS: dict[str, Edit] = {
    "drop-mask": drop_mask,
    "halve-stride": halve_stride,
    "drop-barrier": drop_barrier,
    "split-atomic": split_atomic,
    "pin-program": pin_program,
    "relax-acq-rel": lambda node: _weaker(node, "acq_rel", "relaxed"),
    "relax-acquire": lambda node: _weaker(node, "acquire", "relaxed"),
    "relax-release": lambda node: _weaker(node, "release", "relaxed"),
}


def write_mutant(folder: Path, stem: str, source: str) -> Path:
    """A real file, as `triton.jit` needs one."""
    path = folder / f"{stem}.py"
    path.write_text(source)
    return path
