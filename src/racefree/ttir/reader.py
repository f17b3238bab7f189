"""The state of reading one program: names in scope, fresh values, source sites, and the statements written so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from racefree.access import Kind, Scope, Sem, Site
from racefree.errors import Refused
from racefree.graph.program import Access, Attribute, Data, Element, Int, Op, Statement, Value
from racefree.ttir.generic import PRINTED
from racefree.ttir.tree import Location, Operation, Raw
from racefree.ttir.types import BlockType, block_type, pointer_to, tile

I1 = Int(1)
I32 = Int(32)
I64 = Int(64)


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A tensor descriptor taken apart: a base pointer, i64 extents and strides in elements, and the block it moves."""

    base: Value
    extents: tuple[Value, ...]
    strides: tuple[Value, ...]
    block: BlockType

    @property
    def parts(self) -> tuple[Value, ...]:
        return (self.base, *self.extents, *self.strides)


Bound = Value | Descriptor
"""What an SSA name stands for."""


def flatten(bounds: Sequence[Bound]) -> tuple[Value, ...]:
    """The plain values of a list of names: a descriptor contributes its parts."""
    flat: list[Value] = []
    for bound in bounds:
        if isinstance(bound, Value):
            flat.append(bound)
        else:
            flat.extend(bound.parts)
    return tuple(flat)


class Reader:
    """Reads operations into statements. `handlers` maps operation names to the functions that read them.

    `has_columns` says that columns in locations count from 1 at the start of the line.
    """

    def __init__(
        self, functions: Mapping[str, Operation], handlers: Mapping[str, Handler], *, has_columns: bool = True
    ) -> None:
        self.functions = functions
        self._has_columns = has_columns
        self.body: list[Statement] = []
        self.constants: dict[int, Op] = {}
        self._handlers = handlers
        self._names: dict[str, Bound] = {}
        self._values = 0
        self._accesses = 0
        self._callers: tuple[Site, ...] = ()
        self._function = ""
        self._fallback = Site("", 0)
        self._calls: tuple[str, ...] = ()
        self._sites: dict[Location, Site] = {}

    # ---- names and values --------------------------------------------------------------------------------------------

    def fresh(self, kind: Element, shape: tuple[int, ...] = ()) -> Value:
        value = Value(self._values, kind, shape)
        self._values += 1
        return value

    def fresh_of(self, type_text: str) -> Bound:
        """A fresh value of an MLIR type; a descriptor type gives a descriptor of fresh parts."""
        block = block_type(type_text)
        if block is None:
            return self.fresh(*tile(type_text))
        rank = range(len(block.shape))
        return Descriptor(
            self.fresh(pointer_to(block.element)),
            tuple(self.fresh(I64) for _ in rank),
            tuple(self.fresh(I64) for _ in rank),
            block,
        )

    def bind(self, name: str, bound: Bound) -> None:
        if name in self._names:
            raise Refused("parse", f"{name} is defined twice")
        self._names[name] = bound

    def look(self, name: str) -> Bound:
        bound = self._names.get(name)
        if bound is None:
            raise Refused("parse", f"{name} is used where it is not defined")
        return bound

    def value(self, name: str) -> Value:
        """The plain value of a name; a descriptor where a plain value is needed refuses."""
        bound = self.look(name)
        if isinstance(bound, Descriptor):
            raise Refused("unknown-op", f"the descriptor {name} is used as a plain value", self._fallback)
        return bound

    def operands(self, op: Operation) -> tuple[Value, ...]:
        return tuple(self.value(name) for name in op.operands)

    def results(self, op: Operation) -> tuple[Value, ...]:
        """Fresh plain values for the results of an operation, bound to their names."""
        values = tuple(self.fresh(*tile(text)) for text in op.result_types)
        for name, value in zip(op.results, values, strict=True):
            self.bind(name, value)
        return values

    @contextmanager
    def scope(self) -> Iterator[list[Statement]]:
        """Names bound and statements written inside stay inside; yields the list the statements go to."""
        outer_names, outer_body = self._names, self.body
        self._names, self.body = dict(outer_names), []
        try:
            yield self.body
        finally:
            self._names, self.body = outer_names, outer_body

    @contextmanager
    def into(self, body: list[Statement]) -> Iterator[None]:
        """Statements written inside go to `body`; names stay visible."""
        outer, self.body = self.body, body
        try:
            yield
        finally:
            self.body = outer

    @contextmanager
    def entering(self, function: str, caller: Site | None, definition: Location) -> Iterator[None]:
        """Names and sites of one function body, called from `caller` (None for the kernel). Recursion refuses."""
        if function in self._calls:
            raise Refused("recursion", f"{function} calls itself", caller)
        saved = self._names, self._callers, self._function, self._fallback, self._calls, self._sites
        self._names, self._sites, self._calls = {}, {}, (*self._calls, function)
        self._function = function if caller is None else demangled(function)
        if caller is not None:
            self._callers = (caller, *caller.callers)
        self._fallback = self.site(definition)
        try:
            yield
        finally:
            self._names, self._callers, self._function, self._fallback, self._calls, self._sites = saved

    # ---- sites -------------------------------------------------------------------------------------------------------

    def site(self, location: Location) -> Site:
        """The position an operation was written at, with the calls it was inlined through."""
        known = self._sites.get(location)
        if known is None:
            known = self._sites[location] = self._resolve(location)
        return known

    def _resolve(self, location: Location) -> Site:
        frames = [frame for frame in location.frames if frame.file != PRINTED] or location.frames
        if not frames:
            return self._fallback
        outermost = frames[-1]
        callers = self._callers
        for frame in reversed(frames):
            function = self._function if frame is outermost else ""
            here = Site(frame.file, frame.line, frame.column if self._has_columns else 0, function)
            site = replace(here, callers=callers)
            callers = (here, *callers)
        return site

    # ---- statements --------------------------------------------------------------------------------------------------

    def read(self, op: Operation) -> None:
        """Reads one operation that ends no block."""
        handler = self._handlers.get(op.name)
        if handler is None:
            raise self.unknown(op)
        try:
            handler(self, op)
        except (IndexError, ValueError) as error:
            raise self.unknown(
                op, f"{op.name} has another number of operands, results or regions than known"
            ) from error

    def unknown(self, op: Operation, why: str = "") -> Refused:
        reason = why or f"{op.name} is not modelled"
        return Refused("unknown-op", reason, self.site(op.location))

    def op(
        self,
        name: str,
        operands: tuple[Value, ...],
        kind: Element,
        shape: tuple[int, ...],
        site: Site,
        **attributes: Attribute,
    ) -> Value:
        """Writes one computed operation with one result and returns that result."""
        result = self.fresh(kind, shape)
        self.body.append(Op(name, (result,), operands, attributes, site))
        return result

    def constant(self, number: int | None, kind: Element, site: Site, *, shape: tuple[int, ...] = ()) -> Value:
        return self.op("arith.constant", (), kind, shape, site, value=number)

    def data(self, op: Operation, *, lanewise: bool) -> None:
        operands = flatten([self.look(name) for name in op.operands])
        self.body.append(Data(op.name, self.results(op), operands, lanewise, self.site(op.location)))

    def access(
        self,
        kind: Kind,
        pointer: Value,
        mask: Value | None,
        site: Site,
        element_bytes: int,
        *,
        written: tuple[Value, ...] = (),
        result: Value | None = None,
        other: Value | None = None,
        sem: Sem | None = None,
        scope: Scope | None = None,
        rmw: str | None = None,
        volatile: bool = False,
    ) -> None:
        access = Access(
            self._accesses, kind, pointer, mask, written, result, other, element_bytes, site, sem, scope, rmw, volatile
        )
        self._accesses += 1
        self.body.append(access)


Handler = Callable[[Reader, Operation], None]


def demangled(function: str) -> str:
    """`package.module.helper__i32_Pfp32`, as Triton names the compiled function of `helper`, is `helper`."""
    name = function.rpartition(".")[2]
    end = name.find("__", 1)
    return name if end < 0 else name[:end]


def integer(op: Operation, name: str, reader: Reader) -> int:
    """An integer attribute that must be there."""
    value = op.attributes.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise reader.unknown(op, f"{op.name} has no integer attribute {name}")
    return value


def flag(op: Operation, name: str) -> bool:
    """A boolean attribute, absent meaning false; a unit attribute is true by being there."""
    value = op.attributes.get(name)
    return value is True or (isinstance(value, Raw) and value.text == "unit")


def integers(op: Operation, name: str, reader: Reader) -> tuple[int, ...]:
    """An array of integers that must be there."""
    value = op.attributes.get(name)
    if not isinstance(value, tuple) or not all(isinstance(item, int) for item in value):
        raise reader.unknown(op, f"{op.name} has no integer list {name}")
    return tuple(item for item in value if isinstance(item, int))
