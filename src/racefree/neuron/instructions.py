"""Instructions and descriptor blocks from their decoded objects, in the old and the new spelling of each key."""

from __future__ import annotations

from typing import Any

from racefree.neuron.document import (
    NO_CONTROL,
    NO_SYNC,
    Block,
    Control,
    Dependency,
    DmaBlock,
    EdgeKind,
    Instruction,
    LoopAxis,
    Operand,
    SyncInfo,
    Update,
    Wait,
)
from racefree.neuron.fields import Fields, Malformed, each, fields, flag, integer, string, text, whole
from racefree.neuron.operands import read_operand

LAST_EDGE_NUMBER = 7

_PLAIN_WAITS = ("sem-ge-imm", 1)
_ADDING_UPDATES = ("sem-add-imm", 1)
_INCREMENTS = ("sem-inc", 3)
_SEMAPHORE_TYPES = ("semaphore", 1)

_CONTROL_KEYS = frozenset(
    {
        "on_true",
        "on_false",
        "target",
        "sema_group",
        "id",
        "cores",
        "blocks",
        "comp_op",
        "is_reset_sema",
        "LoopAxis",
        "DynamicForLoopAxis",
    }
)


def _edge_kind(value: Any) -> EdgeKind:
    if isinstance(value, str) and value in EdgeKind.__members__:
        return EdgeKind[value]
    if type(value) is int and 0 <= value <= LAST_EDGE_NUMBER:
        return EdgeKind(value) if value <= EdgeKind.Flow.value else EdgeKind.Invalid
    raise Malformed(f"an edge kind ({', '.join(EdgeKind.__members__)} or its number)", value)


def _dependency(value: Any) -> Dependency:
    match value:
        case str() as name:
            return Dependency(name, EdgeKind.Flow)
        case [str() as name]:
            return Dependency(name, EdgeKind.Flow)
        case [str() as name, kind]:
            return Dependency(name, _edge_kind(kind))
        case [str() as name, kind, [*distances]]:
            return Dependency(name, _edge_kind(kind), tuple(whole(one) for one in distances))
        case {"id": str() as name, "kind": kind} | {"name": str() as name, "kind": kind}:
            return Dependency(name, _edge_kind(kind))
    raise Malformed("a name, [name, kind] or [name, kind, [distances]]", value)


def _oddity(owner: Fields, known: frozenset[str], modes: tuple[object, ...]) -> str:
    """The first key or mode of a wait or an update whose meaning is not known."""
    for key in sorted(owner.keys() - known):
        value = owner[key]
        if key == "type":
            if value not in _SEMAPHORE_TYPES:
                return f"type {value!r}"
        elif key in ("mode", "wait_mode", "update_mode"):
            if value not in modes:
                return f"{key} {value!r}"
        else:
            return f"key {key!r}"
    return ""


_WAIT_KEYS = frozenset({"from", "id", "wait_value"})
_UPDATE_KEYS = frozenset({"id", "update_value"})


def _wait(value: Any) -> Wait:
    owner = fields(value)
    odd = _oddity(owner, _WAIT_KEYS, _PLAIN_WAITS) if owner.keys() - _WAIT_KEYS else ""
    threshold = owner.get("wait_value")
    if threshold is None or type(threshold) is not int:
        if not odd and threshold is not None:
            raise Malformed("an integer", threshold, at=".wait_value")
        odd, threshold = odd or "no wait_value", None
    return Wait(source=text(owner, "from", ""), id=integer(owner, "id"), value=threshold, odd=odd)


def _update(value: Any) -> Update:
    owner = fields(value)
    odd = _oddity(owner, _UPDATE_KEYS, (*_ADDING_UPDATES, *_INCREMENTS)) if owner.keys() - _UPDATE_KEYS else ""
    increments = any(owner.get(key) in _INCREMENTS for key in ("mode", "update_mode"))
    amount = owner.get("update_value", 1 if increments else None)
    if type(amount) is not int:
        if not odd:
            raise Malformed("an integer", "nothing" if amount is None else amount, at=".update_value")
        amount = 0
    if increments and amount != 1:
        odd = odd or f"an increment by {amount}"
    return Update(id=integer(owner, "id"), value=amount, odd=odd)


_SYNC_KEYS = frozenset({"on_wait", "on_update"})


def _sync(owner: Fields) -> SyncInfo:
    value = owner.get("sync_info")
    if not value and not isinstance(value, list | str):
        return NO_SYNC
    try:
        info = fields(value)
        unknown = sorted(info.keys() - _SYNC_KEYS)
        return SyncInfo(
            waits=each(info, "on_wait", _wait),
            updates=each(info, "on_update", _update),
            odd=f"key {unknown[0]!r}" if unknown else "",
        )
    except Malformed as error:
        raise error.under(".sync_info") from None


def _axis(owner: Fields) -> LoopAxis | None:
    """The constant range of a loop; None when a bound is not a constant."""
    value = owner.get("LoopAxis", owner.get("DynamicForLoopAxis"))
    match value:
        case {"lb": int() as lower, "ub": int() as upper, **rest}:
            stride = rest.get("stride", 1)
            if type(stride) is int and stride > 0:
                return LoopAxis(str(rest.get("name", "")), lower, upper, stride)
    return None


def _control(owner: Fields) -> Control:
    if owner.keys().isdisjoint(_CONTROL_KEYS):
        return NO_CONTROL
    identity = owner.get("id")
    return Control(
        on_true=text(owner, "on_true", ""),
        on_false=text(owner, "on_false", ""),
        target=text(owner, "target", ""),
        sema_group=each(owner, "sema_group", whole),
        id=identity if type(identity) is int else None,
        cores=each(owner, "cores", whole),
        cores_listed=owner.get("cores") is not None,
        blocks=each(owner, "blocks", read_block),
        comp_op=text(owner, "comp_op", ""),
        axis=_axis(owner),
        is_reset_sema=flag(owner, "is_reset_sema"),
    )


def _symbolic(owner: Fields) -> str:
    """The key that says this instruction does not simply run once, if any."""
    for key in ("unroll_dependencies", "loopnest", "predicates"):
        if owner.get(key):
            return key
    return ""


def _operands(owner: Fields, key: str, intern: dict[Operand, Operand] | None) -> tuple[Operand, ...]:
    operands = each(owner, key, read_operand)
    if intern is None or not operands:
        return operands
    return tuple(intern.setdefault(operand, operand) for operand in operands)


def read_instruction(value: Any, intern: dict[Operand, Operand] | None = None) -> Instruction:
    """One instruction of a block. `intern` shares equal operands between instructions."""
    owner = fields(value)
    debug = owner.get("debug")
    debug = debug if isinstance(debug, dict) else {}
    line = debug.get("lineno")
    return Instruction(
        name=text(owner, "name"),
        opcode=text(owner, "opcode"),
        engine=text(owner, "engine", "Unassigned"),
        ins=_operands(owner, "ins", intern),
        outs=_operands(owner, "outs", intern),
        indirections=_operands(owner, "indirection_ins", intern),
        dependencies=each(owner, "dependencies", _dependency),
        loop_carried=each(owner, "loop_carried_dependencies", _dependency),
        sync=_sync(owner),
        queue=text(owner, "queue", ""),
        dma_blocks=each(owner, "dma_blocks", string),
        can_read_uninit=flag(owner, "can_read_uninit"),
        control=_control(owner),
        symbolic=_symbolic(owner),
        operation=str(debug.get("op_name", "")),
        file=str(debug.get("filename", debug.get("file", ""))),
        line=line if type(line) is int else 0,
    )


def read_block(value: Any) -> Block:
    """A block nested in an instruction, read at once."""
    owner = fields(value)
    return Block(name=text(owner, "name", ""), instructions=each(owner, "instructions", read_instruction))


def read_dma_block(value: Any, intern: dict[Operand, Operand] | None = None) -> DmaBlock:
    """A descriptor block of a queue: its operands are its own and those of its descriptors."""
    owner = fields(value)
    descriptors = tuple(one for block in each(owner, "blocks", read_block) for one in block.instructions)
    return DmaBlock(
        name=text(owner, "name"),
        ins=_operands(owner, "ins", intern) + tuple(one for part in descriptors for one in part.ins),
        outs=_operands(owner, "outs", intern) + tuple(one for part in descriptors for one in part.outs),
        indirections=_operands(owner, "indirection_ins", intern)
        + tuple(one for part in descriptors for one in part.indirections),
        sync=_sync(owner),
        can_read_uninit=flag(owner, "can_read_uninit") or any(part.can_read_uninit for part in descriptors),
        opcodes=tuple(sorted({part.opcode for part in descriptors})),
    )
