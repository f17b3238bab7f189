"""Tensor descriptors become pointers, masks and plain accesses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from racefree.access import Kind, Scope, Sem
from racefree.errors import Refused
from racefree.graph.program import Op, Program, Value, accesses

Read = Callable[..., Program]

MAKE = """
%d = "tt.make_tensor_descriptor"(%p, %h, %w, %s, %t) <{padding = 1 : i32}>
    : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<2x4xf32>>
"""
PARAMETERS = (
    "%p: !tt.ptr<f32>, %h: i32, %w: i32, %s: i64, %t: i64, %y: i32, %x: i32, %v: tensor<2x4xf32>, %r: tensor<3xi32>"
)
TILE = "!tt.tensordesc<tensor<2x4xf32>>"


def _evaluate(program: Program, given: Mapping[int, Any]) -> dict[int, Any]:
    """Values of the handful of operations a descriptor is lowered to; pointers count bytes."""
    known: dict[int, Any] = dict(given)
    for op in program.body:
        if not isinstance(op, Op):
            continue
        (result,) = op.results
        inputs = [known[value.index] for value in op.operands]
        known[result.index] = _apply(op, result, inputs)
    return known


def _apply(op: Op, result: Value, inputs: list[Any]) -> Any:
    match op.name:
        case "arith.constant":
            return np.full(result.shape, op.attributes["value"] or 0)
        case "tt.make_range":
            return np.arange(op.attributes["start"], op.attributes["end"])  # type: ignore[arg-type]
        case "tt.splat" | "tt.broadcast":
            return np.broadcast_to(inputs[0], result.shape)
        case "tt.expand_dims":
            return np.expand_dims(inputs[0], op.attributes["axis"])  # type: ignore[arg-type]
        case "tt.reshape":
            return np.reshape(inputs[0], result.shape)
        case "arith.extsi":
            return inputs[0]
        case "arith.addi":
            return inputs[0] + inputs[1]
        case "arith.muli":
            return inputs[0] * inputs[1]
        case "arith.andi":
            return inputs[0] & inputs[1]
        case "arith.cmpi":
            return inputs[0] >= inputs[1] if op.attributes["predicate"] == "sge" else inputs[0] < inputs[1]
        case "tt.addptr":
            return inputs[0] + 4 * inputs[1]
        case name:
            raise AssertionError(name)


def _touched(program: Program, given: Mapping[int, Any]) -> list[list[int]]:
    """The addresses each access touches, those of masked-off lanes left out."""
    known = _evaluate(program, given)
    return [
        known[access.pointer.index][known[access.mask.index]].tolist()
        for access in accesses(program)
        if access.mask is not None
    ]


def test_a_block_over_the_edge_touches_what_is_inside(read: Read) -> None:
    program = read(
        PARAMETERS, MAKE + f'"tt.descriptor_store"(%d, %v, %y, %x) : ({TILE}, tensor<2x4xf32>, i32, i32) -> ()'
    )
    # A tensor of 3 rows and 6 columns, rows 10 elements apart, at address 1000; the block starts at row 2, column 4.
    given = {0: 1000, 1: 3, 2: 6, 3: 10, 4: 1, 5: 2, 6: 4}
    assert _touched(program, given) == [[1000 + 4 * 24, 1000 + 4 * 25]]
    assert _touched(program, {**given, 5: -1, 6: -2}) == [[1000, 1004]]


def test_a_load_pads_and_a_reduction_is_a_relaxed_atomic(read: Read) -> None:
    program = read(
        PARAMETERS,
        MAKE
        + f"""
        %0 = "tt.descriptor_load"(%d, %y, %x) <{{cache = 1 : i32, evict = 1 : i32}}> : ({TILE}, i32, i32) -> tensor<2x4xf32>
        "tt.descriptor_reduce"(%d, %0, %y, %x) <{{kind = 1 : i32}}> : ({TILE}, tensor<2x4xf32>, i32, i32) -> ()
        """,
    )
    load, update = accesses(program)
    assert (load.kind, load.element_bytes, load.shape) == (Kind.LOAD, 4, (2, 4))
    assert load.other is not None
    assert (update.kind, update.rmw, update.sem, update.scope) == (Kind.RMW, "fadd", Sem.RELAXED, Scope.GPU)
    assert update.operands == (load.result,)


def test_a_block_may_lose_axes_of_size_one(read: Read) -> None:
    tile = "!tt.tensordesc<tensor<1x4xf32>>"
    program = read(
        PARAMETERS,
        f"""
        %d = "tt.make_tensor_descriptor"(%p, %h, %w, %s, %t) : (!tt.ptr<f32>, i32, i32, i64, i64) -> {tile}
        %0 = "tt.descriptor_load"(%d, %y, %x) : ({tile}, i32, i32) -> tensor<4xf32>
        """,
    )
    (load,) = accesses(program)
    assert load.shape == (4,)
    assert _touched(program, {0: 0, 1: 3, 2: 6, 3: 10, 4: 1, 5: 1, 6: 3}) == [[4 * 13, 4 * 14, 4 * 15]]


def test_gather_and_scatter_take_a_row_for_each_line(read: Read) -> None:
    tile = "!tt.tensordesc<1x4xf32>"
    program = read(
        PARAMETERS,
        f"""
        %d = "tt.make_tensor_descriptor"(%p, %h, %w, %s, %t) : (!tt.ptr<f32>, i32, i32, i64, i64) -> {tile}
        %0 = "tt.descriptor_gather"(%d, %r, %x) : ({tile}, tensor<3xi32>, i32) -> tensor<3x4xf32>
        "tt.descriptor_scatter"(%d, %r, %x, %0) : ({tile}, tensor<3xi32>, i32, tensor<3x4xf32>) -> ()
        """,
    )
    rows = np.array([2, -1, 0])
    expected = [4 * (10 * row + column) for row in (2, 0) for column in (4, 5)]
    assert _touched(program, {0: 0, 1: 3, 2: 6, 3: 10, 4: 1, 6: 4, 8: rows}) == [expected, expected]


def test_a_descriptor_may_be_carried_by_a_loop(read: Read) -> None:
    program = read(
        PARAMETERS,
        MAKE
        + f"""
        %e = "scf.for"(%h, %w, %h, %d) ({{
        ^bb0(%i: i32, %c: {TILE}):
          "tt.descriptor_store"(%c, %v, %i, %x) : ({TILE}, tensor<2x4xf32>, i32, i32) -> ()
          "scf.yield"(%c) : ({TILE}) -> ()
        }}) : (i32, i32, i32, {TILE}) -> {TILE}
        "tt.descriptor_store"(%e, %v, %y, %x) : ({TILE}, tensor<2x4xf32>, i32, i32) -> ()
        """,
    )
    assert [access.kind for access in accesses(program)] == [Kind.STORE, Kind.STORE]


def test_a_host_descriptor_is_a_pointer_with_extents_and_strides(read: Read) -> None:
    program = read(
        '%d: !tt.tensordesc<2x4xf16> loc("d"(unknown)), %h: i32 loc("d.shape.0"(unknown)), %w: i32 loc("d.shape.1"(unknown)),'
        '%s: i64 loc("d.stride.0"(unknown)), %t: i64 loc("d.stride.1"(unknown)), %y: i32 loc("y"(unknown))',
        '%0 = "tt.descriptor_load"(%d, %y, %y) : (!tt.tensordesc<2x4xf16>, i32, i32) -> tensor<2x4xf16>',
    )
    assert [(parameter.name, parameter.part) for parameter in program.parameters] == [
        ("d", ""),
        *(("d", part) for part in ("shape0", "shape1", "stride0", "stride1") * 2),
        ("y", ""),
    ]


@pytest.mark.parametrize(
    "line",
    [
        f'"tt.descriptor_store"(%d, %v, %y) : ({TILE}, tensor<2x4xf32>, i32) -> ()',
        f'"tt.descriptor_reduce"(%d, %v, %y, %x) <{{kind = 77 : i32}}> : ({TILE}, tensor<2x4xf32>, i32, i32) -> ()',
        f'%0 = "arith.select"(%d, %d, %d) : ({TILE}, {TILE}, {TILE}) -> {TILE}',
        f'%0 = "tt.descriptor_load"(%d, %y, %x) : ({TILE}, i32, i32) -> tensor<2x8xf32>',
    ],
)
def test_other_uses_of_descriptors_refuse(read: Read, line: str) -> None:
    with pytest.raises(Refused):
        read(PARAMETERS, MAKE + line)
