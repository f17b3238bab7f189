"""Kernels compiled by the installed Triton: the operation tree against xDSL's, and the traps of TTIR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from racefree.access import Kind, Scope, Sem  # noqa: E402
from racefree.errors import Refused  # noqa: E402
from racefree.graph.program import (  # noqa: E402
    Access,
    Assume,
    Barrier,
    Data,
    For,
    Guard,
    Op,
    Program,
    Ptr,
    Statement,
    While,
    accesses,
    walk,
)
from racefree.ttir.generic import generic_form, generic_form_of_text  # noqa: E402
from racefree.ttir.parse import parse  # noqa: E402
from racefree.ttir.tree import Operation  # noqa: E402

Lower = Callable[..., Any]
Compiled = Callable[..., Program]


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < n
    tl.store(out + lane, tl.load(x + lane, mask=inside) + tl.load(y + lane, mask=inside), mask=inside)


@triton.jit
def _scaled(p, i, k: tl.constexpr):
    tl.store(p + i * k, i)
    return i + k


@triton.jit(noinline=True)
def _apart(p, i):
    if i > 7:
        return i + 1
    tl.store(p + i, i)
    return i


@triton.jit
def control(p, q, n, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    at = p + lane
    total = tl.zeros((BLOCK,), dtype=tl.int32)
    for i in range(n):
        if i > 3:
            total += tl.load(at)
        at += BLOCK
    j = _apart(q, n)
    j = _scaled(q, j, 2)
    while j < n:
        j = _scaled(q, j, 3)
    if n == 9:
        return
    tl.debug_barrier()
    tl.store(at, total + tl.cumsum(lane, 0) + tl.max(total, 0))


@triton.jit
def tiles(x, out, n, m):
    row = tl.arange(0, 16)[:, None]
    column = tl.arange(0, 32)[None, :]
    a = tl.load(x + row * n + column, mask=(row < n) & (column < m), other=0.0)
    product = tl.dot(a, tl.trans(a))
    tl.store(out + row * n + tl.arange(0, 16)[None, :], product)
    left, right = tl.split(tl.reshape(a, (16, 16, 2)))
    tl.store(out + row * n + tl.arange(0, 16)[None, :], left + right)


KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, int]]] = {
    "add": (add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 128}),
    "control": (control, {"p": "*i32", "q": "*i32", "n": "i32"}, {"BLOCK": 64}),
    "tiles": (tiles, {"x": "*fp16", "out": "*fp32", "n": "i32", "m": "i32"}, {}),
}


# ---- the tree against another reader ------------------------------------------------------------------------------------


def _hoisted(text: str) -> str:
    """xDSL wants aliases before their use; MLIR prints them last."""
    lines = text.splitlines()
    aliases = [line for line in lines if line.startswith("#")]
    return "\n".join(aliases + [line for line in lines if not line.startswith("#")])


def _ours(top: Operation) -> list[tuple[Any, ...]]:
    """Every operation with its operands as numbers of the values in order of definition."""
    number: dict[str, int] = {}
    rows: list[tuple[Any, ...]] = []
    count = 0

    def visit(op: Operation, outer: dict[str, int]) -> None:
        nonlocal count
        names = tuple(outer[name] for name in op.operands)
        for name in op.results:
            outer[name] = count
            count += 1
        rows.append(
            (op.name, names, op.result_types, len(op.successors), sorted(op.attributes), op.location.frames[:1])
        )
        for region in op.regions:
            inner = dict(outer)
            for block in region:
                for argument in block.arguments:
                    inner[argument.name] = count
                    count += 1
            for block in region:
                for child in block.operations:
                    visit(child, inner)

    visit(top, number)
    return rows


def _theirs(text: str) -> list[tuple[Any, ...]]:
    pytest.importorskip("xdsl")
    from xdsl.context import Context
    from xdsl.dialects import builtin
    from xdsl.parser import Parser

    context = Context(allow_unregistered=True)
    context.load_dialect(builtin.Builtin)
    number: dict[Any, int] = {}
    rows: list[tuple[Any, ...]] = []

    def first(location: Any) -> tuple[Any, ...]:
        match location:
            case builtin.FileLineColLoc():
                return ((location.filename.data, location.line.data, location.column.data),)
            case builtin.CallSiteLoc():
                return first(location.callee) or first(location.caller)
            case builtin.FusedLoc():
                return next(filter(None, map(first, location.locations)), ())
        inner = [part for part in getattr(location, "parameters", ()) if "loc" in getattr(part, "name", "").lower()]
        return first(inner[-1]) if inner else ()

    def visit(op: Any) -> None:
        operands = tuple(number[value] for value in op.operands)
        for value in op.results:
            number[value] = len(number)
        name = op.op_name.data if isinstance(op, builtin.UnregisteredOp) else op.name
        keys = sorted(key for key in (*op.attributes, *op.properties) if key != "op_name__")
        types = tuple(str(value.type) for value in op.results)
        rows.append((name, operands, types, len(op.successors), keys, first(op.location)))
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    number[argument] = len(number)
            for block in region.blocks:
                for child in block.ops:
                    visit(child)

    visit(Parser(context, _hoisted(text)).parse_module())
    return rows


@pytest.mark.parametrize("name", KERNELS)
def test_the_tree_is_the_one_another_reader_sees(lower: Lower, name: str) -> None:
    kernel, signature, constants = KERNELS[name]
    text = generic_form(lower(kernel, signature, **constants)).text
    ours = [
        (*row[:5], tuple((frame.file, frame.line, frame.column) for frame in row[5]))
        for row in _ours(parse(generic_form_of_text(text)))
    ]
    assert ours == _theirs(text)


@pytest.mark.parametrize("name", KERNELS)
def test_reading_leaves_the_module_as_it_was(lower: Lower, name: str) -> None:
    kernel, signature, constants = KERNELS[name]
    module = lower(kernel, signature, **constants)
    before = module.str()
    first = generic_form(module)
    assert module.str() == before
    assert generic_form_of_text(before).text.count("\n") == first.text.count("\n")
    assert first.census == generic_form_of_text(before).census
    assert first.triton_version == triton.__version__


def test_every_operation_lost_or_doubled_refuses(lower: Lower) -> None:
    kernel, signature, constants = KERNELS["add"]
    module = generic_form(lower(kernel, signature, **constants))
    lines = module.text.splitlines()
    inside = [number for number, line in enumerate(lines) if line.startswith("    ")]
    assert len(inside) > 10
    for number in inside:
        for kept in ([], [lines[number]] * 2):
            text = "\n".join([*lines[:number], *kept, *lines[number + 1 :]])
            with pytest.raises(Refused, match="parse"):
                parse(replace(module, text=text))


def test_renumbered_memory_orders_refuse(lower: Lower, monkeypatch: pytest.MonkeyPatch) -> None:
    from racefree.errors import UnsupportedVersion
    from racefree.ttir import ops

    kernel, signature, constants = KERNELS["add"]
    module = lower(kernel, signature, **constants)
    monkeypatch.setattr(ops, "_TRITON_NAMES", {"MEM_SEMANTIC": {1: "ACQUIRE", 2: "RELAXED"}})
    with pytest.raises(UnsupportedVersion, match="MEM_SEMANTIC"):
        generic_form(module)


# ---- whole kernels ------------------------------------------------------------------------------------------------------


def test_a_vector_add(compiled: Compiled) -> None:
    kernel, signature, constants = KERNELS["add"]
    program = compiled(kernel, signature, **constants)
    assert [parameter.name for parameter in program.parameters] == ["x", "y", "out", "n"]
    first = add.starting_line_number + add.src.splitlines().index("    inside = lane < n") + 2
    assert [(access.kind, access.site.line, access.shape, access.element_bytes) for access in accesses(program)] == [
        (Kind.LOAD, first, (128,), 4),
        (Kind.LOAD, first, (128,), 4),
        (Kind.STORE, first, (128,), 4),
    ]
    assert len({access.mask for access in accesses(program)}) == 1


def _of(program: Program, kind: type[Statement]) -> list[Any]:
    return [statement for statement in walk(program.body) if isinstance(statement, kind)]


def _named(program: Program, name: str) -> list[Op]:
    return [op for op in _of(program, Op) if op.name == name]


def test_control_flow_of_every_kind(compiled: Compiled) -> None:
    kernel, signature, constants = KERNELS["control"]
    program = compiled(kernel, signature, **constants)
    (loop,) = _of(program, For)
    assert {value.element for value in loop.carried if value.shape} >= {Ptr(4)}
    (spin,) = _of(program, While)
    (inlined,) = [statement for statement in walk(spin.after) if isinstance(statement, Access)]
    assert [site.line - control.starting_line_number for site in inlined.site.callers] == [12]
    assert inlined.site.line == _scaled.starting_line_number + 2
    guards = [statement for statement in program.body if isinstance(statement, Guard)]
    assert [[type(inner).__name__ for inner in guard.body if not isinstance(inner, Op)] for guard in guards] == [
        ["Access"],
        [],
        ["Barrier", "Access"],
    ]
    assert guards[0].body[-1].site.function == "_apart"
    (scan,) = _named(program, "tt.scan")
    assert scan.attributes == {"axis": 0, "combine": "add", "reverse": False}
    (fold,) = _named(program, "tt.reduce")
    assert fold.attributes == {"axis": 0, "combine": "max"}


# ---- traps --------------------------------------------------------------------------------------------------------------


@triton.jit
def _k_signs(p, u, i, j):
    tl.store(p + i // j, 1)
    tl.store(p + i % j, 2)
    tl.store(u + tl.load(u) // 3, 3)
    tl.store(u + (tl.load(u + 1) >> 3), 4)
    tl.store(u + (tl.load(u + 2) > 7), 5)


def test_signedness_is_in_the_operation(compiled: Compiled) -> None:
    program = compiled(_k_signs, {"p": "*i32", "u": "*u32", "i": "i32", "j": "i32"})
    names = [op.name for op in _of(program, Op)]
    assert {"arith.divsi", "arith.remsi", "arith.divui", "arith.shrui", "arith.extui"} <= set(names)
    assert "ugt" in [op.attributes["predicate"] for op in _named(program, "arith.cmpi")]


@triton.jit
def _k_wide(p, n):
    tl.store(p + (n * n).to(tl.int64), 1)


def test_products_wrap_before_they_are_widened(compiled: Compiled) -> None:
    program = compiled(_k_wide, {"p": "*i32", "n": "i32"})
    (product,) = _named(program, "arith.muli")
    (widened,) = _named(program, "arith.extsi")
    assert product.results[0].element.bits == 32
    assert widened.operands == product.results


@triton.jit
def _k_bool(p, out, n):
    lane = tl.arange(0, 32)
    tl.store(out + lane, tl.load(p + lane) & (lane < n))
    wide = p.to(tl.pointer_type(tl.int32), bitcast=True)
    tl.store(wide + lane, 1)


def test_pointer_steps_follow_the_pointee(compiled: Compiled) -> None:
    program = compiled(_k_bool, {"p": "*i1", "out": "*i1", "n": "i32"})
    assert [access.element_bytes for access in accesses(program)] == [1, 1, 4]
    steps = [op.operands[0].element for op in _named(program, "tt.addptr")]
    assert sorted(step.pointee_bytes for step in steps) == [1, 1, 4]


@triton.jit
def _k_integers(p, n):
    base = p.to(tl.int64) + n
    tl.store(base.to(tl.pointer_type(tl.int16)), 1)


def test_addresses_as_integers(compiled: Compiled) -> None:
    program = compiled(_k_integers, {"p": "*i32", "n": "i64"})
    (store,) = accesses(program)
    assert store.element_bytes == 2
    assert {op.name for op in _of(program, Op)} & {"tt.ptr_to_int", "tt.bitcast"}


@triton.jit
def _k_choice(p, q, n):
    base = p if n > 3 else q
    if n > 5:
        base += 8
    tl.store(base, 1)
    a = p
    p = q
    q = a
    for _ in range(n):
        tl.store(p, 2)
        a = p
        p = q
        q = a


def test_a_choice_of_pointers_and_swapped_names(compiled: Compiled) -> None:
    program = compiled(_k_choice, {"p": "*i32", "q": "*i32", "n": "i32"})
    assert [parameter.name for parameter in program.parameters] == ["p", "q", "n"]
    p, q = (parameter.value for parameter in program.parameters[:2])
    (loop,) = _of(program, For)
    assert loop.inits == (q, p)
    assert loop.yields == tuple(reversed(loop.carried))
    assert loop.results[0].element == Ptr(4)


@triton.jit
def _k_down(p, n):
    for i in tl.range(n, 0, -1):
        tl.store(p + i, i)
    for i in tl.static_range(3):
        tl.store(p - i, i)


def test_loops_that_descend_or_unroll(compiled: Compiled) -> None:
    program = compiled(_k_down, {"p": "*i32", "n": "i32"})
    (loop,) = _of(program, For)
    assert not loop.unsigned
    assert [type(statement).__name__ for statement in program.body].count("Access") == 3


@triton.jit
def _k_float_max(p, x):
    lane = tl.arange(0, 32)
    tl.atomic_max(p + lane, tl.load(x + lane), mask=lane < 20, sem="relaxed")


def test_a_float_maximum_is_two_integer_updates(compiled: Compiled) -> None:
    program = compiled(_k_float_max, {"p": "*fp32", "x": "*fp32"})
    updates = [access for access in accesses(program) if access.kind is Kind.RMW]
    assert sorted(str(update.rmw) for update in updates) == ["max", "umin"]
    assert {(update.element_bytes, update.sem, update.scope) for update in updates} == {(4, Sem.RELAXED, Scope.GPU)}
    assert updates[0].mask != updates[1].mask


@triton.jit
def _k_orders(p, n):
    tl.atomic_add(p, n, sem="release", scope="sys")
    tl.atomic_xchg(p, n, sem="acquire", scope="cta")
    tl.atomic_cas(p, n, n, sem="acq_rel", scope="gpu")
    tl.load(p, volatile=True)
    while tl.atomic_cas(p, 0, 1) != 0:
        pass


def test_orders_and_scopes_are_triton_s(compiled: Compiled) -> None:
    found = accesses(compiled(_k_orders, {"p": "*i32", "n": "i32"}))
    assert [(access.rmw, access.sem, access.scope) for access in found if access.sem is not None][:3] == [
        ("add", Sem.RELEASE, Scope.SYSTEM),
        ("exch", Sem.ACQUIRE, Scope.CTA),
        (None, Sem.ACQ_REL, Scope.GPU),
    ]
    assert found[-1].kind is Kind.CAS
    assert found[0].shape == ()


def test_a_spin_is_a_while_without_results(compiled: Compiled) -> None:
    program = compiled(_k_orders, {"p": "*i32", "n": "i32"})
    (spin,) = _of(program, While)
    assert spin.results == ()
    assert any(isinstance(statement, Access) for statement in spin.before)


@triton.jit
def _k_tiles(p, q):
    lane = tl.arange(0, 32)
    both = tl.join(lane, lane + 100)
    left, right = tl.split(both)
    tl.store(p + both, 1)
    tl.store(p + left + right, 1)
    tl.store(p + tl.reshape(both, (64,), can_reorder=True), 1)
    tl.store(p + tl.gather(lane, 31 - lane, 0), 1)
    tl.store(q + tl.histogram(lane, 32), 1)


def test_tiles_are_moved_not_forgotten(compiled: Compiled) -> None:
    program = compiled(_k_tiles, {"p": "*i32", "q": "*i32"})
    (join,) = _named(program, "tt.join")
    assert join.results[0].shape == (32, 2)
    assert _named(program, "tt.reshape")[0].attributes == {"allow_reorder": True}
    assert _named(program, "tt.gather")[0].attributes == {"axis": 0}
    assert _named(program, "tt.histogram")[0].results[0].shape == (32,)
    assert not _of(program, Data)


@triton.jit
def _k_assume(p, n):
    tl.assume(n > 3)
    tl.device_assert(n > 4)
    tl.device_print("n", n)
    tl.debug_barrier()
    tl.store(p + n, 1)


def test_assumptions_and_barriers(compiled: Compiled) -> None:
    program = compiled(_k_assume, {"p": "*i32", "n": "i32"})
    (assume,) = _of(program, Assume)
    assert assume.site.line == _k_assume.starting_line_number + 2
    (barrier,) = _of(program, Barrier)
    assert barrier.global_read
    assert barrier.global_write


@triton.jit
def _k_clock(p):
    now = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], dtype=tl.int64, is_pure=False, pack=1)
    tl.store(p, now)


@triton.jit
def _k_fence(p):
    tl.inline_asm_elementwise("membar.gl; mov.u32 $0, 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(p, 1)


def test_assembly_that_reads_a_clock_is_data_and_a_fence_refuses(compiled: Compiled) -> None:
    (statement,) = _of(compiled(_k_clock, {"p": "*i64"}), Data)
    assert statement.name == "tt.elementwise_inline_asm"
    with pytest.raises(Refused, match="not marked pure") as refused:
        compiled(_k_fence, {"p": "*i32"})
    assert refused.value.refusal.source is not None
    assert refused.value.refusal.source.line == _k_fence.starting_line_number + 2


@triton.jit
def _k_device_descriptor(p, n, m):
    tensor = tl.make_tensor_descriptor(p, [n, m], [m, 1], [8, 16])
    i = tl.program_id(0)
    tensor.store([8 * i, 4], tensor.load([8 * i, 4]))
    tensor.atomic_add([8 * i, 6], tensor.load([8 * i, 4]))


@triton.jit
def _k_host_descriptor(d, n):
    d.store([n, 4], d.load([n, 4]))


@pytest.mark.parametrize("arch", [80, 90])
def test_descriptors_are_plain_accesses_for_every_target(compiled: Compiled, arch: int) -> None:
    program = compiled(_k_device_descriptor, {"p": "*fp32", "n": "i32", "m": "i32"}, arch=arch)
    assert [access.kind for access in accesses(program)] == [Kind.LOAD, Kind.STORE, Kind.LOAD, Kind.RMW]
    assert {(access.shape, access.element_bytes) for access in accesses(program)} == {((8, 16), 4)}
    assert all(access.mask is not None and access.mask.shape == (8, 16) for access in accesses(program))


@pytest.mark.parametrize("arch", [80, 90])
def test_host_descriptors_are_told_part_by_part(compiled: Compiled, arch: int) -> None:
    program = compiled(_k_host_descriptor, {"d": "tensordesc<fp16[8,16]>", "n": "i32"}, arch=arch)
    assert {parameter.name for parameter in program.parameters} == {"d", "n"}
    parts = [parameter.part for parameter in program.parameters if parameter.name == "d"]
    numbers = ["shape0", "shape1", "stride0", "stride1"]
    assert [part for part in parts if part not in ("padding", "roundF32ToTF32")] == ["", *numbers, *numbers]
    assert [access.kind for access in accesses(program)] == [Kind.LOAD, Kind.STORE]


@triton.jit
def _k_atomic_load(p, q):
    tl.store(q, tl.atomic_load(p, sem="acquire"))


@pytest.mark.skipif(not hasattr(tl, "atomic_load"), reason="Triton 3.9 brought atomic loads")
def test_atomic_loads_refuse(compiled: Compiled) -> None:
    with pytest.raises(Refused, match=r"tt\.atomic_load") as refused:
        compiled(_k_atomic_load, {"p": "*i32", "q": "*i32"})
    assert refused.value.refusal.source is not None
    assert refused.value.refusal.source.line == _k_atomic_load.starting_line_number + 2
