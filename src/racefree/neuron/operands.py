"""Operands and memory locations from their decoded objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from racefree.neuron.document import (
    DTYPE_BYTES,
    Alias,
    Allocation,
    Immediate,
    MemoryLocation,
    MemoryType,
    Operand,
    Pairs,
    PhysicalAp,
    RegisterAccess,
    RegisterAp,
    SymbolicAp,
    UnknownOperand,
)
from racefree.neuron.fields import Fields, Malformed, each, fields, flag, integer, text, whole

MUST_ALIAS = 3


def _pair(value: Any) -> tuple[int, int]:
    match value:
        case [int() as step, int() as num] if num >= 1:
            return step, num
    raise Malformed("[step, num] with num at least 1", value)


def _constant(value: Any) -> int | None:
    """An affine field: its constant, or None when it depends on something. Both expression versions."""
    match value:
        case None:
            return 0
        case bool():
            pass
        case int():
            return value
        case {"kind": "AffExprKind", "terms": [], **rest} | {"terms": [], **rest}:
            constant = rest.get("c", 0)
            if type(constant) is int:
                return constant
        case dict():
            return None
    raise Malformed("an integer or an expression", value)


def _dtype(owner: Fields) -> str:
    name = text(owner, "dtype")
    if name not in DTYPE_BYTES:
        raise Malformed(f"a dtype ({', '.join(sorted(DTYPE_BYTES))})", name, at=".dtype")
    return name


def _physical(owner: Fields) -> Operand:
    dynamic = owner.get("dynamic_ap_info")
    try:
        offset = _constant(owner.get("offset"))
    except Malformed as error:
        raise error.under(".offset") from None
    pairs: Pairs = each(owner, "ap", _pair)
    if not pairs:
        raise Malformed("at least one [step, num] pair", owner.get("ap"), at=".ap")
    return PhysicalAp(
        memref=text(owner, "memref"),
        memset=text(owner, "memsetref", ""),
        dtype=_dtype(owner),
        ap=pairs,
        offset=offset,
        dynamic="" if dynamic is None else json.dumps(dynamic, sort_keys=True),
        owner_function=text(owner, "memref_owner_func", ""),
    )


def _symbolic(owner: Fields) -> Operand:
    return SymbolicAp(memset=text(owner, "memsetref"), dtype=_dtype(owner))


def _register_pattern(owner: Fields) -> Operand:
    return RegisterAp(memset=text(owner, "memsetref"), dtype=_dtype(owner), register=text(owner, "regref", ""))


def _register(owner: Fields) -> Operand:
    return RegisterAccess(text(owner, "regref"))


def _immediate(owner: Fields) -> Operand:
    return Immediate(text(owner, "kind"))


_READERS: dict[str, Callable[[Fields], Operand]] = {
    "physical_ap": _physical,
    "symbolic_ap": _symbolic,
    "symbolic_pwap": _symbolic,
    "register_ap": _register_pattern,
    "register_access": _register,
    "imm_value": _immediate,
    "imm_array": _immediate,
    "symbolic_imm_value": _immediate,
}


def read_operand(value: Any) -> Operand:
    owner = fields(value)
    kind = text(owner, "kind")
    reader = _READERS.get(kind)
    return reader(owner) if reader else UnknownOperand(kind)


def shard_ids(value: Any) -> set[str]:
    """The canonical text of every shard-id symbol inside an expression, however deep."""
    match value:
        case {"kind": "ShardIDKind"}:
            return {json.dumps(value, sort_keys=True)}
        case dict():
            return set().union(*(shard_ids(part) for part in value.values()))
        case list() | tuple():
            return set().union(*(shard_ids(part) for part in value))
    return set()


def _memory_type(owner: Fields) -> MemoryType:
    value = owner.get("type")
    if isinstance(value, str) and value in MemoryType.__members__:
        return MemoryType[value]
    if type(value) is int and value in MemoryType._value2member_map_:
        return MemoryType(value)
    raise Malformed(f"a memory type ({', '.join(MemoryType.__members__)})", value, at=".type")


def _alias(value: Any) -> Alias:
    match value:
        case [str(), str() as location, int() as kind] | [str() as location, int() as kind]:
            return Alias(location, kind == MUST_ALIAS)
    raise Malformed("[set, location, kind] or [location, kind]", value)


def _location(value: Any) -> MemoryLocation:
    owner = fields(value)
    return MemoryLocation(
        name=text(owner, "name"),
        type=_memory_type(owner),
        addr=integer(owner, "addr", 0),
        dims=each(owner, "dims", whole),
        bank=integer(owner, "bank", 0),
        base=integer(owner, "base", 0),
        allocated=flag(owner, "allocated", True),
        alias=each(owner, "alias", _alias),
        shared=flag(owner, "is_shared_post_dram_alloc"),
        remote_target=_reference(owner, "remote_local_target"),
        pointer_to=_reference(owner, "pointer_ref_memloc"),
    )


def _reference(owner: Fields, key: str) -> str:
    """A location named by string or by the list an alias is written as; any other form counts as present, unread."""
    match owner.get(key):
        case None:
            return ""
        case str() as name:
            return name
        case [*_, str() as name]:
            return name
        case other:
            return json.dumps(other, sort_keys=True)


def read_allocation(value: Any) -> Allocation:
    owner = fields(value)
    return Allocation(
        name=text(owner, "name"),
        kind=text(owner, "kind", "Internal"),
        storage=text(owner, "Skind", "memory_location_set"),
        addr_space=text(owner, "addr_space", "Local"),
        dtype=text(owner, "dtype", ""),
        locations=each(owner, "memorylocations", _location),
    )
