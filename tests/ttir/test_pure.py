"""Pure operations: what is computed, what is data, and what refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from racefree.errors import Refused
from racefree.graph.program import Data, Op, Program

Shown = Callable[..., list[str]]
Read = Callable[..., Program]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('%0 = "arith.constant"() <{value = -7 : i32}> : () -> i32', "%1:i32 = arith.constant(value=-7)"),
        ('%0 = "arith.constant"() <{value = true}> : () -> i1', "%1:i1 = arith.constant(value=1)"),
        ('%0 = "arith.constant"() <{value = 1.5e+00 : f32}> : () -> f32', "%1:f32 = arith.constant(value=None)"),
        (
            '%0 = "arith.constant"() <{value = dense<false> : tensor<8xi1>}> : () -> tensor<8xi1>',
            "%1:8xi1 = arith.constant(value=0)",
        ),
        (
            '%0 = "arith.constant"() <{value = dense<[[1, -2], [3, 4]]> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>',
            "%1:2x2xi64 = arith.constant(value=(1, -2, 3, 4))",
        ),
        (
            '%0 = "arith.constant"() <{value = dense<"0x0100FEFF"> : tensor<2xi16>}> : () -> tensor<2xi16>',
            "%1:2xi16 = arith.constant(value=(1, -2))",
        ),
        (
            '%0 = "arith.constant"() <{value = dense<0x7FC00000> : tensor<4xf32>}> : () -> tensor<4xf32>',
            "%1:4xf32 = arith.constant(value=None)",
        ),
        (
            '%0 = "tt.make_range"() <{end = 48 : i32, start = 16 : i32}> : () -> tensor<32xi32>',
            "%1:32xi32 = tt.make_range(start=16, end=48)",
        ),
        ('%0 = "tt.get_program_id"() <{axis = 2 : i32}> : () -> i32', "%1:i32 = tt.get_program_id(axis=2)"),
        ('%0 = "tt.get_num_programs"() <{axis = 1 : i32}> : () -> i32', "%1:i32 = tt.get_num_programs(axis=1)"),
        (
            '%0 = "arith.cmpi"(%x, %x) <{predicate = 9 : i64}> : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi1>',
            "%1:4x8xi1 = arith.cmpi(%0, %0, predicate=uge)",
        ),
        (
            '%0 = "tt.trans"(%x) <{order = array<i32: 1, 0>}> : (tensor<4x8xi32>) -> tensor<8x4xi32>',
            "%1:8x4xi32 = tt.trans(%0, order=(1, 0))",
        ),
        (
            '%0 = "tt.expand_dims"(%x) <{axis = 1 : i32}> : (tensor<4x8xi32>) -> tensor<4x1x8xi32>',
            "%1:4x1x8xi32 = tt.expand_dims(%0, axis=1)",
        ),
        (
            '%0 = "tt.reshape"(%x) <{allow_reorder}> : (tensor<4x8xi32>) -> tensor<32xi32>',
            "%1:32xi32 = tt.reshape(%0, allow_reorder=True)",
        ),
        (
            '%0 = "tt.reshape"(%x) : (tensor<4x8xi32>) -> tensor<32xi32>',
            "%1:32xi32 = tt.reshape(%0, allow_reorder=False)",
        ),
        (
            '%0 = "tt.join"(%x, %x) : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8x2xi32>',
            "%1:4x8x2xi32 = tt.join(%0, %0)",
        ),
        (
            '%0 = "tt.mulhiui"(%x, %x) : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>',
            "%1:4x8xi32 = tt.mulhiui(%0, %0)",
        ),
        (
            '%0 = "tt.gather"(%x, %x) <{axis = 0 : i32}> : (tensor<4x8xi32>, tensor<4x8xi32>) -> tensor<4x8xi32>',
            "%1:4x8xi32 = tt.gather(%0, %0, axis=0)",
        ),
        ('%0 = "arith.index_cast"(%x) : (tensor<4x8xi32>) -> tensor<4x8xindex>', "%1:4x8xi64 = arith.index_cast(%0)"),
        ('%0 = "arith.bitcast"(%x) : (tensor<4x8xi32>) -> tensor<4x8xf32>', "%1:4x8xf32 = data arith.bitcast(%0)"),
        ('%0 = "tt.bitcast"(%x) : (tensor<4x8xi32>) -> tensor<4x8xf32>', "%1:4x8xf32 = data tt.bitcast(%0)"),
        ('%0 = "arith.sitofp"(%x) : (tensor<4x8xi32>) -> tensor<4x8xf32>', "%1:4x8xf32 = data arith.sitofp(%0)"),
        ('%0 = "tt.histogram"(%x) : (tensor<4x8xi32>) -> tensor<16xi32>', "%1:16xi32 = tt.histogram(%0)"),
        ('%0 = "ub.poison"() <{value = #ub.poison}> : () -> i32', "%1:i32 = ub.poison()"),
    ],
)
def test_each_operation(shown: Shown, line: str, expected: str) -> None:
    assert shown("%x: tensor<4x8xi32>", line) == [expected]


def test_pointers_keep_the_size_their_offsets_count(shown: Shown) -> None:
    assert shown(
        "%p: !tt.ptr<i1>, %q: !tt.ptr<bf16>, %t: tensor<8x!tt.ptr<f8E4M3FN>>, %n: i64, %r: !tt.ptr<!tt.ptr<f32>>",
        """
        %0 = "tt.bitcast"(%p) : (!tt.ptr<i1>) -> !tt.ptr<i8>
        %1 = "tt.ptr_to_int"(%q) : (!tt.ptr<bf16>) -> i64
        %2 = "tt.int_to_ptr"(%1) : (i64) -> !tt.ptr<f64>
        %3 = "tt.addptr"(%r, %n) : (!tt.ptr<!tt.ptr<f32>>, i64) -> !tt.ptr<!tt.ptr<f32>>
        %4 = "tt.bitcast"(%t) : (tensor<8x!tt.ptr<f8E4M3FN>>) -> tensor<8x!tt.ptr<i32>>
        """,
    ) == [
        "%5:ptr1 = tt.bitcast(%0)",
        "%6:i64 = tt.ptr_to_int(%1)",
        "%7:ptr8 = tt.int_to_ptr(%6)",
        "%8:ptr8 = tt.addptr(%4, %3)",
        "%9:8xptr4 = tt.bitcast(%2)",
    ]


FOLD = """
%0 = "{name}"(%x) <{{{attributes}}}> ({{
^bb0(%a: i32, %b: i32):
  %1 = "{step}"({operands}) : (i32, i32) -> i32
  "{name}.return"(%1) : (i32) -> ()
}}) : (tensor<8xi32>) -> {result}
"""


@pytest.mark.parametrize(
    ("step", "operands", "expected"),
    [
        ("arith.addi", "%a, %b", "%1:i32 = tt.reduce(%0, axis=0, combine=add)"),
        ("arith.maxsi", "%b, %a", "%1:i32 = tt.reduce(%0, axis=0, combine=max)"),
        ("arith.minui", "%a, %b", "%1:i32 = tt.reduce(%0, axis=0, combine=minu)"),
        ("arith.ori", "%a, %b", "%1:i32 = tt.reduce(%0, axis=0, combine=or)"),
        (
            "arith.addi",
            "%a, %a",
            "%4:i32 = tt.reduce(%0, axis=0, combine=[(%1, %2): %3:i32 = arith.addi(%1, %1) -> %3])",
        ),
        (
            "arith.subi",
            "%a, %b",
            "%4:i32 = tt.reduce(%0, axis=0, combine=[(%1, %2): %3:i32 = arith.subi(%1, %2) -> %3])",
        ),
    ],
)
def test_a_reduction_of_integers_is_computed(shown: Shown, step: str, operands: str, expected: str) -> None:
    body = FOLD.format(name="tt.reduce", attributes="axis = 0 : i32", step=step, operands=operands, result="i32")
    assert shown("%x: tensor<8xi32>", body) == [expected]


REORDERED = """
%r = "tt.reshape"(%x) <{{allow_reorder}}> : (tensor<{shape}xi32>) -> tensor<{reshaped}xi32>
%0 = "{name}"(%r) <{{axis = 0 : i32{attributes}}}> ({{
^bb0(%a: i32, %b: i32):
  %1 = "{step}"(%a, %b) : (i32, i32) -> i32
  "{name}.return"(%1) : (i32) -> ()
}}) : (tensor<{reshaped}xi32>) -> {result}
"""


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("8", ["%2:i32 = tt.reduce(%0, axis=0, combine=add)"]),
        ("2x4", ["%2:8xi32 = tt.reshape(%0, allow_reorder=False)", "%3:i32 = tt.reduce(%2, axis=0, combine=add)"]),
    ],
)
def test_a_sum_of_all_elements_is_the_same_in_any_order(shown: Shown, shape: str, expected: list[str]) -> None:
    body = REORDERED.format(name="tt.reduce", shape=shape, reshaped="8", attributes="", step="arith.addi", result="i32")
    reordered = "%1:8xi32 = tt.reshape(%0, allow_reorder=True)"
    assert shown(f"%x: tensor<{shape}xi32>", body) == [reordered, *expected]


@pytest.mark.parametrize(
    ("name", "reshaped", "attributes", "step", "result"),
    [
        ("tt.reduce", "8", "", "arith.subi", "i32"),
        ("tt.reduce", "2x4", "", "arith.addi", "tensor<4xi32>"),
        ("tt.scan", "8", ", reverse = false", "arith.addi", "tensor<8xi32>"),
    ],
)
def test_what_depends_on_the_order_keeps_the_reordered_tile(
    shown: Shown, name: str, reshaped: str, attributes: str, step: str, result: str
) -> None:
    body = REORDERED.format(name=name, shape="8", reshaped=reshaped, attributes=attributes, step=step, result=result)
    told = shown("%x: tensor<8xi32>", body)
    assert len(told) == 2
    assert f"{name}(%1, axis=0" in told[1]


def test_a_constant_made_outside_comes_along_into_a_combiner(shown: Shown) -> None:
    made = '%m = "arith.constant"() <{value = 7 : i32}> : () -> i32\n'
    fold = FOLD.format(
        name="tt.reduce", attributes="axis = 0 : i32", step="arith.andi", operands="%a, %m", result="i32"
    )
    told = shown("%x: tensor<8xi32>", made + fold)[-1]
    assert told.endswith("combine=[(%2, %3): %1:i32 = arith.constant(value=7); %4:i32 = arith.andi(%2, %1) -> %4])"), (
        told
    )


def test_a_combiner_that_uses_another_value_from_outside_is_data(shown: Shown) -> None:
    fold = FOLD.format(
        name="tt.reduce", attributes="axis = 0 : i32", step="arith.andi", operands="%a, %n", result="i32"
    )
    assert "combine" not in shown("%x: tensor<8xi32>, %n: i32", fold)[-1]


@pytest.mark.parametrize("reverse", [True, False])
def test_a_scan_keeps_its_direction(shown: Shown, reverse: bool) -> None:
    attributes = f"axis = 0 : i32, reverse = {str(reverse).lower()}"
    body = FOLD.format(
        name="tt.scan", attributes=attributes, step="arith.xori", operands="%a, %b", result="tensor<8xi32>"
    )
    assert shown("%x: tensor<8xi32>", body) == [f"%1:8xi32 = tt.scan(%0, axis=0, combine=xor, reverse={reverse})"]


def test_a_reduction_that_could_touch_memory_refuses(read: Read) -> None:
    body = FOLD.format(name="tt.reduce", attributes="axis = 0 : i32", step="tt.call", operands="%a, %b", result="i32")
    with pytest.raises(Refused, match=r"tt\.call inside tt\.reduce"):
        read("%x: tensor<8xi32>", body)


def test_a_float_reduction_is_data(read: Read) -> None:
    program = read(
        "%x: tensor<8xf32>",
        """
        %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
        ^bb0(%a: f32, %b: f32):
          %1 = "arith.addf"(%a, %b) : (f32, f32) -> f32
          "tt.reduce.return"(%1) : (f32) -> ()
        }) : (tensor<8xf32>) -> f32
        """,
    )
    (statement,) = program.body
    assert isinstance(statement, Data)
    assert not statement.lanewise


ASSEMBLY = """
%0 = "tt.elementwise_inline_asm"(%x) <{{asm_string = "{text}", constraints = "=r,r", packed_element = {pack} : i32,
pure = {pure}}}> : (tensor<8xi32>) -> tensor<8xi32>
"""


@pytest.mark.parametrize(
    ("text", "pack", "pure", "expected"),
    [
        ("st.global.u32 [$1], 0;", 1, "true", "%1:8xi32 = data tt.elementwise_inline_asm(%0)"),
        ("prmt.b32 $0, $1, 0, 1;", 4, "true", "%1:8xi32 = data mixing tt.elementwise_inline_asm(%0)"),
        ("mov.u32 $0, %smid;", 1, "false", "%1:8xi32 = data tt.elementwise_inline_asm(%0)"),
        ("griddepcontrol.wait; // dummy $0", 1, "false", "%1:8xi32 = data tt.elementwise_inline_asm(%0)"),
    ],
)
def test_inline_assembly_is_data(shown: Shown, text: str, pack: int, pure: str, expected: str) -> None:
    assert shown("%x: tensor<8xi32>", ASSEMBLY.format(text=text, pack=pack, pure=pure)) == [expected]


@pytest.mark.parametrize(
    "text", ["st.global.u32 [$1], 0;", "mov.u32 $0, %smid; membar.gl;", "mov.u32 $0, %r; bar.sync 0;"]
)
def test_impure_assembly_refuses(read: Read, text: str) -> None:
    with pytest.raises(Refused, match="not marked pure"):
        read("%x: tensor<8xi32>", ASSEMBLY.format(text=text, pack=1, pure="false"))


@pytest.mark.parametrize("pure", [True, False])
def test_an_external_function_must_be_pure(read: Read, pure: bool) -> None:
    line = (
        f'%0 = "tt.extern_elementwise"(%x) <{{libname = "", libpath = "", pure = {str(pure).lower()}, symbol = "f"}}>'
        " : (tensor<8xi32>) -> tensor<8xi32>"
    )
    if not pure:
        with pytest.raises(Refused, match="is_pure"):
            read("%x: tensor<8xi32>", line)
        return
    (statement,) = read("%x: tensor<8xi32>", line).body
    assert isinstance(statement, Data)
    assert statement.lanewise


@pytest.mark.parametrize(
    "line",
    [
        '"tt.atomic_poll"(%x) : (tensor<4x8xi32>) -> ()',
        '%0 = "arith.new_op"(%x) : (tensor<4x8xi32>) -> tensor<4x8xi32>',
        '%0 = "builtin.unrealized_conversion_cast"(%x) : (tensor<4x8xi32>) -> !tt.ptr<i32>',
    ],
)
def test_an_unknown_operation_refuses_with_its_line(read: Read, line: str) -> None:
    with pytest.raises(Refused) as refused:
        read("%x: tensor<4x8xi32>", f'{line} loc("k.py":21:5)')
    assert refused.value.refusal.kind == "unknown-op"
    assert refused.value.refusal.source is not None
    assert refused.value.refusal.source.line == 21


def test_assertions_leave_no_trace(read: Read) -> None:
    body = """
        "tt.print"(%x) <{hex = false, isSigned = array<i32: 1>, prefix = "x"}> : (i1) -> ()
        "tt.assert"(%x) <{message = "no"}> : (i1) -> ()
        "llvm.intr.assume"(%x) <{op_bundle_sizes = array<i32>}> : (i1) -> ()
    """
    assert [type(statement).__name__ for statement in read("%x: i1", body).body] == ["Data", "Assume"]


def test_integer_arithmetic_is_computed_and_float_arithmetic_is_not(read: Read) -> None:
    program = read(
        "%x: tensor<4xi32>, %y: tensor<4xf32>",
        """
        %0 = "arith.muli"(%x, %x) <{overflowFlags = #arith.overflow<none>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %1 = "arith.mulf"(%y, %y) <{fastmath = #arith.fastmath<none>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        """,
    )
    assert [type(statement) for statement in program.body] == [Op, Data]
