"""Handlers of accesses and barriers."""

from __future__ import annotations

from racefree.access import Kind, Scope, Sem
from racefree.graph.program import Barrier, Ptr, Value
from racefree.ttir import ops
from racefree.ttir.reader import Handler, Reader, flag, integer, integers
from racefree.ttir.tree import Operation


def _pointee_bytes(reader: Reader, op: Operation, pointer: Value) -> int:
    if not isinstance(pointer.element, Ptr):
        raise reader.unknown(op, f"{op.name} through {op.operand_types[0]} is not modelled")
    return pointer.element.pointee_bytes


def _load(reader: Reader, op: Operation) -> None:
    has = integers(op, "operandSegmentSizes", reader)
    values = reader.operands(op)
    if len(has) != 3 or sum(has) != len(values) or has[0] != 1 or max(has) > 1:
        raise reader.unknown(op, "tt.load has operands that are not pointer, mask and other")
    rest = list(values[1:])
    mask = rest.pop(0) if has[1] else None
    other = rest.pop(0) if has[2] else None
    size = _pointee_bytes(reader, op, values[0])
    (result,) = reader.results(op)
    site = reader.site(op.location)
    reader.access(Kind.LOAD, values[0], mask, site, size, result=result, other=other, volatile=flag(op, "isVolatile"))


def _store(reader: Reader, op: Operation) -> None:
    pointer, written, mask = _with_mask(reader, op)
    size = _pointee_bytes(reader, op, pointer)
    reader.access(Kind.STORE, pointer, mask, reader.site(op.location), size, written=(written,))


def _with_mask(reader: Reader, op: Operation) -> tuple[Value, Value, Value | None]:
    """Pointer and value, and the mask that is the only optional operand."""
    match reader.operands(op):
        case (pointer, written):
            return pointer, written, None
        case (pointer, written, mask):
            return pointer, written, mask
        case _:
            raise reader.unknown(op, f"{op.name} has {len(op.operands)} operands")


def _order(reader: Reader, op: Operation) -> tuple[Sem, Scope]:
    sem = ops.SEMANTICS.get(integer(op, "sem", reader))
    scope = ops.SCOPES.get(integer(op, "scope", reader))
    if sem is None or scope is None:
        raise reader.unknown(op, f"{op.name} has an unknown memory semantic or scope")
    return sem, scope


def _rmw(reader: Reader, op: Operation) -> None:
    pointer, written, mask = _with_mask(reader, op)
    name = ops.RMW_NAMES.get(integer(op, "atomic_rmw_op", reader))
    if name is None:
        raise reader.unknown(op, "tt.atomic_rmw has an unknown operation")
    sem, scope = _order(reader, op)
    size = _pointee_bytes(reader, op, pointer)
    (result,) = reader.results(op)
    site = reader.site(op.location)
    reader.access(
        Kind.RMW, pointer, mask, site, size, written=(written,), result=result, sem=sem, scope=scope, rmw=name
    )


def _cas(reader: Reader, op: Operation) -> None:
    pointer, expected, desired = reader.operands(op)
    sem, scope = _order(reader, op)
    size = _pointee_bytes(reader, op, pointer)
    (result,) = reader.results(op)
    site = reader.site(op.location)
    reader.access(Kind.CAS, pointer, None, site, size, written=(expected, desired), result=result, sem=sem, scope=scope)


def _barrier(reader: Reader, op: Operation) -> None:
    spaces = integer(op, "addrSpace", reader)
    site = reader.site(op.location)
    reader.body.append(Barrier(bool(spaces & ops.GLOBAL_READ), bool(spaces & ops.GLOBAL_WRITE), site))


def _block_barrier(reader: Reader, op: Operation) -> None:
    # The block-wide barrier instruction makes all earlier accesses of the block, of any address space, visible to its
    # threads; MLIR's address-space list could narrow that, so a barrier that carries one is not taken for a full one.
    if op.attributes.get("address_spaces") is not None:
        raise reader.unknown(op, "a gpu.barrier limited to some address spaces is not modelled")
    reader.body.append(Barrier(global_read=True, global_write=True, site=reader.site(op.location)))


HANDLERS: dict[str, Handler] = {
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _rmw,
    "tt.atomic_cas": _cas,
    "ttg.barrier": _barrier,
    "gpu.barrier": _block_barrier,
}
