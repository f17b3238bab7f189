"""Runs a script whose own assertions about results cannot hold, because the kernels that make the results are not run."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

TOLERATED = "__racefree_tolerates__"


def run_script(path: Path, tolerates: Callable[[], bool]) -> dict[str, Any]:
    """Runs a Python file as `__main__`, as `python FILE` does, and returns its globals.

    A check of the file that fails while `tolerates()` is true (a kernel was skipped before) has no effect, see `make_lenient`.
    Raises what the script raises.
    """
    code = lenient_code(path.read_bytes(), str(path))
    main = ModuleType("__main__")
    main.__dict__.update(__file__=str(path), __builtins__=builtins, __cached__=None, **{TOLERATED: tolerates})
    before = sys.modules.get("__main__")
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)
    finally:
        if before is not None:
            sys.modules["__main__"] = before
    return main.__dict__


def lenient_code(source: bytes, filename: str) -> CodeType:
    """The compiled source, made lenient; lines stay as they are."""
    tree = ast.parse(source, filename)
    make_lenient(tree)
    return compile(tree, filename, "exec", dont_inherit=True)


def make_lenient(tree: ast.Module) -> None:
    """Changes a module so that its checks ask `TOLERATED` (a global, or a builtin) whether to go on when they fail.

    A check is an `assert`, or a call as a statement of its own that raises AssertionError. All are evaluated as before. Blocks
    that expect an exception (`with pytest.raises(...)`) stay what they are.
    """
    ast.fix_missing_locations(_Lenient().visit(tree))


_EXPECTS = frozenset({"raises", "assertRaises", "assertRaisesRegex"})


class _Lenient(ast.NodeTransformer):
    """assert T, M   ->   try: assert T, M   except AssertionError: if not tolerates(): raise"""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return self._guarded(node)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        return self._guarded(node) if isinstance(node.value, ast.Call | ast.Await) else node

    def visit_With(self, node: ast.With) -> ast.stmt:
        entered = (item.context_expr for item in node.items)
        called = (e.func for e in entered if isinstance(e, ast.Call))
        names = {getattr(f, "attr", getattr(f, "id", "")) for f in called}
        if not names & _EXPECTS:
            self.generic_visit(node)
        return node

    def _guarded(self, node: ast.stmt) -> ast.Try:
        asks = ast.Call(ast.Name(TOLERATED, ast.Load()), [], [])
        again = ast.If(ast.UnaryOp(ast.Not(), asks), [ast.Raise()], [])
        handler = ast.ExceptHandler(ast.Name("AssertionError", ast.Load()), None, [again])
        lenient = ast.Try([node], [handler], [], [])
        for part in ast.walk(handler):
            ast.copy_location(part, node)
        return ast.copy_location(lenient, node)
