"""Writes small kernels as programs by hand, one call a statement, and the launches they run at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import numpy as np

from racefree.access import Kind, Scope, Sem, Site
from racefree.graph.launch import LaunchFacts, Scalar, Storage, Tensor
from racefree.graph.program import (
    Access,
    Attribute,
    Barrier,
    Data,
    Element,
    Float,
    For,
    Guard,
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

I1, I8, I32, I64 = Int(1), Int(8), Int(32), Int(64)
F32 = Float(32)


class Kernel:
    """A program under construction. Statements go to the innermost open body; `line` numbers them."""

    def __init__(self) -> None:
        self._values = count()
        self._accesses = count()
        self._bodies: list[list[Statement]] = [[]]
        self._lines = count(1)
        self.parameters: list[Parameter] = []

    # ---- values ------------------------------------------------------------------------------------------------------

    def value(self, element: Element, shape: tuple[int, ...] = ()) -> Value:
        return Value(next(self._values), element, shape)

    def site(self) -> Site:
        return Site("kernel.py", next(self._lines))

    def emit(self, statement: Statement) -> None:
        self._bodies[-1].append(statement)

    def parameter(self, name: str, element: Element) -> Value:
        value = self.value(element)
        self.parameters.append(Parameter(name, value))
        return value

    def tensor(self, name: str, element_bytes: int = 4) -> Value:
        return self.parameter(name, Ptr(element_bytes))

    def op(
        self,
        name: str,
        *operands: Value,
        element: Element | None = None,
        shape: tuple[int, ...] | None = None,
        **attributes: Attribute,
    ) -> Value:
        kind = element if element is not None else operands[0].element
        result = self.value(kind, operands[0].shape if shape is None else shape)
        self.emit(Op(name, (result,), operands, attributes, self.site()))
        return result

    def const(self, number: int | tuple[int, ...], element: Element = I32, shape: tuple[int, ...] = ()) -> Value:
        result = self.value(element, shape)
        self.emit(Op("arith.constant", (result,), (), {"value": number}, self.site()))
        return result

    def pid(self, axis: int = 0) -> Value:
        result = self.value(I32)
        self.emit(Op("tt.get_program_id", (result,), (), {"axis": axis}, self.site()))
        return result

    def arange(self, extent: int) -> Value:
        result = self.value(I32, (extent,))
        self.emit(Op("tt.make_range", (result,), (), {"start": 0, "end": extent}, self.site()))
        return result

    def splat(self, scalar: Value, shape: tuple[int, ...]) -> Value:
        return self.op("tt.splat", scalar, shape=shape) if shape else scalar

    def _level(self, left: Value, right: Value | int) -> tuple[Value, Value]:
        if isinstance(right, int):
            right = self.const(right, left.element, left.shape)
        if left.shape and not right.shape:
            right = self.splat(right, left.shape)
        if right.shape and not left.shape:
            left = self.splat(left, right.shape)
        return left, right

    def add(self, left: Value, right: Value | int) -> Value:
        return self.op("arith.addi", *self._level(left, right))

    def sub(self, left: Value, right: Value | int) -> Value:
        return self.op("arith.subi", *self._level(left, right))

    def mul(self, left: Value, right: Value | int) -> Value:
        return self.op("arith.muli", *self._level(left, right))

    def rem(self, left: Value, right: Value | int) -> Value:
        return self.op("arith.remsi", *self._level(left, right))

    def cmp(self, predicate: str, left: Value, right: Value | int) -> Value:
        return self.op("arith.cmpi", *self._level(left, right), element=I1, predicate=predicate)

    def at(self, base: Value, offset: Value | int) -> Value:
        """The pointer `offset` elements past `base`."""
        if isinstance(offset, int):
            offset = self.const(offset)
        pointer = self.splat(base, offset.shape) if not base.shape else base
        return self.op("tt.addptr", pointer, offset)

    def data(
        self,
        *operands: Value,
        element: Element = F32,
        shape: tuple[int, ...] | None = None,
        lanewise: bool = True,
        name: str = "arith.addf",
    ) -> Value:
        result = self.value(element, operands[0].shape if shape is None else shape)
        self.emit(Data(name, (result,), operands, lanewise, self.site()))
        return result

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def load(
        self, pointer: Value, mask: Value | None = None, other: Value | None = None, element: Element = F32
    ) -> Value:
        result = self.value(element, pointer.shape)
        size = pointer.element.pointee_bytes if isinstance(pointer.element, Ptr) else 4
        self.emit(Access(next(self._accesses), Kind.LOAD, pointer, mask, (), result, other, size, self.site()))
        return result

    def store(self, pointer: Value, stored: Value | None = None, mask: Value | None = None) -> None:
        what = stored if stored is not None else self.const(1, I32, pointer.shape)
        size = pointer.element.pointee_bytes if isinstance(pointer.element, Ptr) else 4
        self.emit(Access(next(self._accesses), Kind.STORE, pointer, mask, (what,), None, None, size, self.site()))

    def atomic_add(self, pointer: Value, scope: Scope = Scope.GPU, sem: Sem = Sem.RELAXED) -> Value:
        result = self.value(I32, pointer.shape)
        size = pointer.element.pointee_bytes if isinstance(pointer.element, Ptr) else 4
        one = self.const(1, I32, pointer.shape)
        self.emit(
            Access(
                next(self._accesses),
                Kind.RMW,
                pointer,
                None,
                (one,),
                result,
                None,
                size,
                self.site(),
                sem,
                scope,
                "add",
            )
        )
        return result

    def barrier(self) -> None:
        self.emit(Barrier(True, True, self.site()))

    # ---- control flow ------------------------------------------------------------------------------------------------

    @contextmanager
    def _body(self) -> Iterator[list[Statement]]:
        self._bodies.append([])
        yield self._bodies[-1]
        self._bodies.pop()

    @contextmanager
    def guard(self, condition: Value) -> Iterator[None]:
        with self._body() as body:
            yield
        self.emit(Guard(condition, tuple(body), self.site()))

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """An `if` without results and without an else."""
        with self._body() as body:
            yield
        self.emit(If(condition, tuple(body), (), (), (), (), self.site()))

    def choose(self, condition: Value, left: Value, right: Value) -> Value:
        """An `if` that only chooses between two values."""
        result = self.value(left.element, left.shape)
        self.emit(If(condition, (), (left,), (), (right,), (result,), self.site()))
        return result

    def loop(
        self,
        lower: Value | int,
        upper: Value | int,
        step: Value | int = 1,
        carried: Sequence[Value] = (),
        element: Element = I32,
    ) -> LoopBuilder:
        bounds = [self.const(b, element) if isinstance(b, int) else b for b in (lower, upper, step)]
        return LoopBuilder(self, bounds, list(carried), element)

    def repeat(self, inits: Sequence[Value]) -> WhileBuilder:
        return WhileBuilder(self, list(inits))

    def program(self) -> Program:
        return Program("kernel", tuple(self.parameters), tuple(self._bodies[0]), Site("kernel.py", 0))


class LoopBuilder:
    """`with kernel.loop(0, n) as loop:` with `loop.index`, `loop.carried`; call `loop.yields(...)` before it closes."""

    def __init__(self, kernel: Kernel, bounds: list[Value], inits: list[Value], element: Element) -> None:
        self.kernel, self.bounds, self.inits = kernel, bounds, inits
        self.index = kernel.value(element)
        self.carried = [kernel.value(v.element, v.shape) for v in inits]
        self.results = [kernel.value(v.element, v.shape) for v in inits]
        self._yields: list[Value] = []

    def yields(self, *values: Value) -> None:
        self._yields = list(values)

    def __enter__(self) -> LoopBuilder:
        self.kernel._bodies.append([])
        return self

    def __exit__(self, *_: object) -> None:
        body = tuple(self.kernel._bodies.pop())
        self.kernel.emit(
            For(
                self.index,
                *self.bounds,
                tuple(self.carried),
                tuple(self.inits),
                body,
                tuple(self._yields),
                tuple(self.results),
                False,
                self.kernel.site(),
            )
        )


class WhileBuilder:
    """A while loop: fill `before()` and `after()`, then `close(...)`."""

    def __init__(self, kernel: Kernel, inits: list[Value]) -> None:
        self.kernel, self.inits = kernel, inits
        self.before_args = [kernel.value(v.element, v.shape) for v in inits]
        self.after_args = [kernel.value(v.element, v.shape) for v in inits]
        self.results = [kernel.value(v.element, v.shape) for v in inits]
        self._before: tuple[Statement, ...] = ()
        self._after: tuple[Statement, ...] = ()

    @contextmanager
    def before(self) -> Iterator[None]:
        with self.kernel._body() as body:
            yield
        self._before = tuple(body)

    @contextmanager
    def after(self) -> Iterator[None]:
        with self.kernel._body() as body:
            yield
        self._after = tuple(body)

    def close(self, condition: Value, forwarded: Sequence[Value], yields: Sequence[Value]) -> None:
        self.kernel.emit(
            While(
                tuple(self.before_args),
                tuple(self.inits),
                self._before,
                condition,
                tuple(forwarded),
                tuple(self.after_args),
                self._after,
                tuple(yields),
                tuple(self.results),
                self.kernel.site(),
            )
        )


def tensor(
    address: int,
    elements: int,
    element_bytes: int = 4,
    contents: Sequence[int] | None = None,
    storage: Storage | None = None,
) -> Tensor:
    """A one-dimensional integer tensor; its own storage unless one is given."""
    if storage is None:
        held = None
        if contents is not None:
            held = np.frombuffer(np.array(contents, dtype=f"i{element_bytes}").tobytes(), dtype=np.uint8).copy()
        storage = Storage(address, elements * element_bytes, held)
    return Tensor(address, element_bytes, f"int{8 * element_bytes}", (elements,), (1,), storage)


def launch(
    grid: int | tuple[int, int, int] = 1,
    num_warps: int = 1,
    warp_size: int = 32,
    **arguments: Tensor | int,
) -> LaunchFacts:
    shape = (grid, 1, 1) if isinstance(grid, int) else grid
    bound = {name: Scalar(a) if isinstance(a, int) else a for name, a in arguments.items()}
    return LaunchFacts("kernel", shape, dict(bound), num_warps=num_warps, warp_size=warp_size, triton_version="3.8.0")
