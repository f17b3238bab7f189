"""Tensor descriptors, lowered to the pointer arithmetic, masks and plain accesses they stand for.

A descriptor access moves one block whose corner is given by signed coordinates. Element `k` of axis `a` stands at position
`coordinate_a + k`, and lies `stride_a` elements (i64) from the element before it. Positions outside `[0, extent_a)` are not
touched: a load yields the padding there and a store drops them. A gather or scatter gives one coordinate for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from racefree.access import Kind, Scope, Sem, Site
from racefree.graph.program import Element, Int, Ptr, Value
from racefree.ttir import ops
from racefree.ttir.reader import I1, I32, I64, Descriptor, Handler, Reader, integer
from racefree.ttir.tree import Operation
from racefree.ttir.types import block_type, element_bytes, tile


@dataclass(frozen=True, slots=True)
class _Block:
    """The elements one descriptor access touches: a tile of pointers and the mask of those inside the tensor."""

    pointer: Value
    mask: Value
    element_bytes: int


def _make(reader: Reader, op: Operation) -> None:
    block = block_type(op.result_types[0])
    base, *numbers = (reader.value(name) for name in op.operands)
    if block is None or len(numbers) != 2 * len(block.shape) or not isinstance(base.element, Ptr):
        raise reader.unknown(op, f"{op.name} gives {op.result_types[0]}, which is not modelled")
    if element_bytes(block.element) != base.element.pointee_bytes:
        raise reader.unknown(op, "a descriptor whose elements differ from its base pointer's is not modelled")
    site = reader.site(op.location)
    rank = len(block.shape)
    wide = tuple(_widen(reader, number, site) for number in numbers)
    reader.bind(op.results[0], Descriptor(base, wide[:rank], wide[rank:], block))


def _load(reader: Reader, op: Operation) -> None:
    _, *coordinates = op.operands
    _read(reader, op, coordinates)


def _read(reader: Reader, op: Operation, coordinates: Sequence[str]) -> None:
    kind, shape = tile(op.result_types[0])
    site = reader.site(op.location)
    block = _block(reader, op, coordinates, shape)
    # Only floats can be padded with anything but zero, and no rung computes with floats.
    other = reader.constant(0 if isinstance(kind, Int) else None, kind, site, shape=shape)
    (result,) = reader.results(op)
    reader.access(Kind.LOAD, block.pointer, block.mask, site, block.element_bytes, result=result, other=other)


def _store(reader: Reader, op: Operation) -> None:
    _, written, *coordinates = op.operands
    _write(reader, op, written, coordinates)


def _scatter(reader: Reader, op: Operation) -> None:
    _, *coordinates, written = op.operands
    _write(reader, op, written, coordinates)


def _write(reader: Reader, op: Operation, written: str, coordinates: Sequence[str]) -> None:
    value = reader.value(written)
    block = _block(reader, op, coordinates, value.shape)
    site = reader.site(op.location)
    reader.access(Kind.STORE, block.pointer, block.mask, site, block.element_bytes, written=(value,))


def _reduce(reader: Reader, op: Operation) -> None:
    """An atomic update of each element, which orders nothing."""
    _, written, *coordinates = op.operands
    name = ops.DESCRIPTOR_RMW_NAMES.get(integer(op, "kind", reader))
    if name is None:
        raise reader.unknown(op, "tt.descriptor_reduce has an unknown operation")
    value = reader.value(written)
    block = _block(reader, op, coordinates, value.shape)
    site = reader.site(op.location)
    reader.access(
        Kind.RMW,
        block.pointer,
        block.mask,
        site,
        block.element_bytes,
        written=(value,),
        result=reader.fresh(value.element, value.shape),
        sem=Sem.RELAXED,
        scope=Scope.GPU,
        rmw=name if isinstance(value.element, Int) else f"f{name}",
    )


def _block(reader: Reader, op: Operation, coordinates: Sequence[str], shape: tuple[int, ...]) -> _Block:
    """Pointers and mask of an access that moves a tile of `shape`: the block, or the block without some axes of size 1."""
    descriptor = reader.look(op.operands[0])
    if not isinstance(descriptor, Descriptor) or not isinstance(descriptor.base.element, Ptr):
        raise reader.unknown(op, f"{op.name} through {op.operand_types[0]} is not modelled")
    at = [reader.value(name) for name in coordinates]
    full = list(descriptor.block.shape)
    for axis, coordinate in enumerate(at):
        if coordinate.shape:
            full[axis : axis + 1] = coordinate.shape
    if len(at) != len(full) or len(descriptor.block.shape) != len(full) or prod(full) != prod(shape):
        raise reader.unknown(op, f"{op.name} moves a tile of another size than its descriptor's block")
    pointer, mask = _Corner(reader, descriptor, tuple(full), reader.site(op.location)).tiles(at)
    if tuple(full) != shape:
        site = reader.site(op.location)
        pointer = reader.op("tt.reshape", (pointer,), pointer.element, shape, site, allow_reorder=False)
        mask = reader.op("tt.reshape", (mask,), mask.element, shape, site, allow_reorder=False)
    return _Block(pointer, mask, descriptor.base.element.pointee_bytes)


@dataclass(frozen=True, slots=True)
class _Corner:
    """Writes the arithmetic of one access."""

    reader: Reader
    descriptor: Descriptor
    shape: tuple[int, ...]
    site: Site

    def tiles(self, coordinates: Sequence[Value]) -> tuple[Value, Value]:
        offset: Value | None = None
        mask: Value | None = None
        for axis, coordinate in enumerate(coordinates):
            position = self._spread(self._positions(axis, coordinate), axis)
            stride = self._splat(self.descriptor.strides[axis], position.shape)
            distance = self._full(self._op("arith.muli", I64, position, stride))
            inside = self._full(self._inside(axis, position))
            offset = distance if offset is None else self._op("arith.addi", I64, offset, distance)
            mask = inside if mask is None else self._op("arith.andi", I1, mask, inside)
        assert offset is not None
        assert mask is not None
        base = self.descriptor.base
        pointer = self._op("tt.addptr", base.element, self._splat(base, self.shape), offset)
        return pointer, mask

    def _positions(self, axis: int, coordinate: Value) -> Value:
        """Positions along one axis, a tile of one dimension."""
        wide = _widen(self.reader, coordinate, self.site)
        if wide.shape:
            return wide
        size = self.shape[axis]
        steps = self.reader.op("tt.make_range", (), I32, (size,), self.site, start=0, end=size)
        return self._op("arith.addi", I64, self._splat(wide, (size,)), _widen(self.reader, steps, self.site))

    def _spread(self, line: Value, axis: int) -> Value:
        """The tile of one dimension as dimension `axis` of a tile of full rank."""
        for position in range(len(self.shape)):
            if position != axis:
                shape = (*line.shape[:position], 1, *line.shape[position:])
                line = self.reader.op("tt.expand_dims", (line,), line.element, shape, self.site, axis=position)
        return line

    def _inside(self, axis: int, position: Value) -> Value:
        zero = self.reader.constant(0, I64, self.site, shape=position.shape)
        extent = self._splat(self.descriptor.extents[axis], position.shape)
        low = self.reader.op("arith.cmpi", (position, zero), I1, position.shape, self.site, predicate="sge")
        high = self.reader.op("arith.cmpi", (position, extent), I1, position.shape, self.site, predicate="slt")
        return self._op("arith.andi", I1, low, high)

    def _op(self, name: str, kind: Element, *operands: Value) -> Value:
        return self.reader.op(name, operands, kind, operands[0].shape, self.site)

    def _splat(self, scalar: Value, shape: tuple[int, ...]) -> Value:
        return self.reader.op("tt.splat", (scalar,), scalar.element, shape, self.site)

    def _full(self, part: Value) -> Value:
        if part.shape == self.shape:
            return part
        return self.reader.op("tt.broadcast", (part,), part.element, self.shape, self.site)


def _widen(reader: Reader, number: Value, site: Site) -> Value:
    if number.element == I64:
        return number
    return reader.op("arith.extsi", (number,), I64, number.shape, site)


HANDLERS: dict[str, Handler] = {
    "tt.make_tensor_descriptor": _make,
    "tt.descriptor_load": _load,
    "tt.descriptor_gather": _load,
    "tt.descriptor_store": _store,
    "tt.descriptor_scatter": _scatter,
    "tt.descriptor_reduce": _reduce,
}
