"""Control flow: structured statements, blocks as guards, calls as copies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from racefree.errors import Refused
from racefree.graph.program import Program

Shown = Callable[..., list[str]]
Read = Callable[..., Program]


def test_a_for_loop_carries_pointers_and_integers(shown: Shown) -> None:
    assert shown(
        "%p: !tt.ptr<f32>, %n: i32",
        """
        %0 = "arith.constant"() <{value = 0 : i32}> : () -> i32
        %1:2 = "scf.for"(%0, %n, %n, %p, %0) ({
        ^bb0(%i: i32, %q: !tt.ptr<f32>, %s: i32):
          %2 = "tt.addptr"(%q, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
          "scf.yield"(%2, %i) : (!tt.ptr<f32>, i32) -> ()
        }) {tt.num_stages = 2 : i32} : (i32, i32, i32, !tt.ptr<f32>, i32) -> (!tt.ptr<f32>, i32)
        "tt.store"(%1#0, %1#1) : (!tt.ptr<f32>, i32) -> ()
        """,
    ) == [
        "%2:i32 = arith.constant(value=0)",
        "%7:ptr4, %8:i32 = for %3:i32 = %2 to %1 step %1 [%4:ptr4 = %0, %5:i32 = %2]:",
        "  %6:ptr4 = tt.addptr(%4, %3)",
        "  yield %6, %3",
        "#0 store 4B @%7 with %8",
    ]


def test_unsigned_bounds_are_kept(shown: Shown) -> None:
    for flag in ("{unsignedCmp}", "{unsignedCmp = true}"):
        lines = shown(
            "%n: i32",
            f"""
            "scf.for"(%n, %n, %n) ({{
            ^bb0(%i: i32):
              "scf.yield"() : () -> ()
            }}) {flag} : (i32, i32, i32) -> ()
            """,
        )
        assert lines == ["for %1:i32 = %0 to %0 step %0 unsigned:", "  yield"]


def test_an_if_yields_values_and_may_lack_an_else(shown: Shown) -> None:
    assert shown(
        "%c: i1, %p: !tt.ptr<i8>, %q: !tt.ptr<i8>",
        """
        %0 = "scf.if"(%c) ({
          "scf.yield"(%p) : (!tt.ptr<i8>) -> ()
        }, {
          "scf.yield"(%q) : (!tt.ptr<i8>) -> ()
        }) : (i1) -> !tt.ptr<i8>
        "scf.if"(%c) ({
          "ttg.barrier"() <{addrSpace = 31 : i32}> : () -> ()
          "scf.yield"() : () -> ()
        }, {
        }) : (i1) -> ()
        """,
    ) == [
        "%3:ptr1 = if %0:",
        "  yield %1",
        "else:",
        "  yield %2",
        "if %0:",
        "  barrier read write",
        "  yield",
    ]


def test_a_while_forwards_values_to_its_body(shown: Shown) -> None:
    assert shown(
        "%p: !tt.ptr<i32>, %n: i32",
        """
        %0 = "scf.while"(%n) ({
        ^bb0(%a: i32):
          %1 = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>, isVolatile = true}> : (!tt.ptr<i32>) -> i32
          %2 = "arith.cmpi"(%1, %a) <{predicate = 6 : i64}> : (i32, i32) -> i1
          "scf.condition"(%2, %1) : (i1, i32) -> ()
        }, {
        ^bb0(%b: i32):
          "scf.yield"(%b) : (i32) -> ()
        }) : (i32) -> i32
        """,
    ) == [
        "%6:i32 = while [%2:i32 = %1]:",
        "  %3:i32 = #0 load volatile 4B @%0",
        "  %4:i1 = arith.cmpi(%3, %2, predicate=ult)",
        "  continue if %4 with %3",
        "do [%5:i32]:",
        "  yield %5",
    ]


def test_a_switch_is_a_chain_of_branches(shown: Shown) -> None:
    assert shown(
        "%n: index",
        """
        %0 = "scf.index_switch"(%n) <{cases = array<i64: 3, 5>}> ({
          "scf.yield"(%n) : (index) -> ()
        }, {
          %1 = "arith.addi"(%n, %n) : (index, index) -> index
          "scf.yield"(%1) : (index) -> ()
        }, {
          "scf.yield"(%n) : (index) -> ()
        }) : (index) -> index
        """,
    ) == [
        "%1:i64 = arith.constant(value=3)",
        "%2:i1 = arith.cmpi(%0, %1, predicate=eq)",
        "%3:i64 = arith.constant(value=5)",
        "%4:i1 = arith.cmpi(%0, %3, predicate=eq)",
        "%6:i64 = if %2:",
        "  %5:i64 = arith.addi(%0, %0)",
        "  yield %5",
        "else:",
        "  %7:i64 = if %4:",
        "    yield %0",
        "  else:",
        "    yield %0",
        "  yield %7",
    ]


BARRIER = '"ttg.barrier"() <{addrSpace = 31 : i32}> : () -> ()'


def test_what_follows_an_early_return_runs_under_its_negation(shown: Shown) -> None:
    assert shown(
        "%c: i1",
        f"""
        "cf.cond_br"(%c)[^bb1, ^bb2] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
      ^bb1:  // pred: ^bb0
        "tt.return"() : () -> ()
      ^bb2:  // pred: ^bb0
        {BARRIER}
        """,
    ) == [
        "%1:i1 = arith.constant(value=1)",
        "%2:i1 = arith.xori(%0, %1)",
        "guard %2:",
        "  barrier read write",
    ]


def test_a_second_return_narrows_the_condition_and_keeps_values_visible(shown: Shown) -> None:
    assert shown(
        "%c: i1, %n: i32",
        f"""
        "cf.cond_br"(%c)[^bb1, ^bb2] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
      ^bb1:
        "tt.return"() : () -> ()
      ^bb2:
        %0 = "arith.cmpi"(%n, %n) <{{predicate = 0 : i64}}> : (i32, i32) -> i1
        "cf.cond_br"(%0)[^bb1, ^bb3] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
      ^bb3:
        {BARRIER}
        """,
    ) == [
        "%2:i1 = arith.constant(value=1)",
        "%3:i1 = arith.xori(%0, %2)",
        "guard %3:",
        "  %4:i1 = arith.cmpi(%1, %1, predicate=eq)",
        "%5:i1 = arith.constant(value=1)",
        "%6:i1 = arith.xori(%4, %5)",
        "%7:i1 = arith.andi(%3, %6)",
        "guard %7:",
        "  barrier read write",
    ]


def test_a_merge_runs_always_and_selects_its_arguments(shown: Shown) -> None:
    assert shown(
        "%c: i1, %p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %x: f16",
        """
        "cf.cond_br"(%c, %p)[^bb2, ^bb1] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, !tt.ptr<f16>) -> ()
      ^bb1:
        "ttg.barrier"() <{addrSpace = 2 : i32}> : () -> ()
        "cf.br"(%q)[^bb2] : (!tt.ptr<f16>) -> ()
      ^bb2(%r: !tt.ptr<f16>):
        "tt.store"(%r, %x) : (!tt.ptr<f16>, f16) -> ()
        """,
    ) == [
        "%4:i1 = arith.constant(value=1)",
        "%5:i1 = arith.xori(%0, %4)",
        "guard %5:",
        "  barrier read",
        "%6:ptr2 = arith.select(%0, %1, %2)",
        "#0 store 2B @%6 with %3",
    ]


def test_a_join_of_two_of_three_ways_runs_under_either(shown: Shown) -> None:
    assert shown(
        "%c: i1, %d: i1",
        f"""
        "cf.cond_br"(%c)[^bb3, ^bb1] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
      ^bb1:
        "cf.cond_br"(%d)[^bb3, ^bb2] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
      ^bb2:
        "tt.return"() : () -> ()
      ^bb3:
        {BARRIER}
        """,
    ) == [
        "%2:i1 = arith.constant(value=1)",
        "%3:i1 = arith.xori(%0, %2)",
        "%4:i1 = arith.andi(%3, %1)",
        "%5:i1 = arith.ori(%0, %4)",
        "guard %5:",
        "  barrier read write",
    ]


def test_a_branch_to_one_block_either_way_is_no_branch(shown: Shown) -> None:
    assert shown(
        "%c: i1",
        f"""
        "cf.cond_br"(%c)[^bb1, ^bb1] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
      ^bb1:
        {BARRIER}
        """,
    ) == ["barrier read write"]


def test_a_loop_of_blocks_refuses(read: Read) -> None:
    with pytest.raises(Refused) as refused:
        read(
            "%c: i1",
            """
            "cf.br"()[^bb1] : () -> ()
          ^bb1:
            "cf.cond_br"(%c)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> () loc("k.py":7:3)
          ^bb2:
            """,
        )
    assert refused.value.refusal.kind == "unstructured-loop"
    assert refused.value.refusal.source is not None
    assert refused.value.refusal.source.line == 7


HELPER = """
  "tt.func"() <{function_type = (i32) -> i32, sym_name = "m.twice__i32", sym_visibility = "private"}> ({
  ^bb0(%a: i32):
    %0 = "arith.addi"(%a, %a) : (i32, i32) -> i32 loc("h.py":3:1)
    "tt.return"(%0) : (i32) -> ()
  }) {noinline = true} : () -> () loc("h.py":2:1)
"""


def test_a_call_copies_the_callee_with_its_call_site(read: Read, shown: Shown) -> None:
    body = """
        %0 = "tt.call"(%n) <{callee = @m.twice__i32}> : (i32) -> i32 loc("k.py":11:1)
        %1 = "tt.call"(%0) <{callee = @m.twice__i32}> : (i32) -> i32 loc("k.py":12:1)
    """
    assert shown("%n: i32", body, more=HELPER) == ["%1:i32 = arith.addi(%0, %0)", "%2:i32 = arith.addi(%1, %1)"]
    sites = [statement.site for statement in read("%n: i32", body, more=HELPER).body]
    assert [(site.file, site.line, site.function) for site in sites] == [("h.py", 3, "twice")] * 2
    assert [[(c.file, c.line, c.function) for c in site.callers] for site in sites] == [
        [("k.py", 11, "k")],
        [("k.py", 12, "k")],
    ]


def test_recursion_refuses(read: Read) -> None:
    helper = """
      "tt.func"() <{function_type = () -> (), sym_name = "loop", sym_visibility = "private"}> ({
        "tt.call"() <{callee = @loop}> : () -> ()
        "tt.return"() : () -> ()
      }) : () -> ()
    """
    with pytest.raises(Refused, match="recursion"):
        read("%n: i32", '"tt.call"() <{callee = @loop}> : () -> ()', more=helper)


def test_a_call_out_of_the_module_refuses(read: Read) -> None:
    with pytest.raises(Refused, match="outside the module"):
        read("%n: i32", '"tt.call"() <{callee = @gone}> : () -> ()')


def test_names_of_a_region_end_with_it(read: Read) -> None:
    with pytest.raises(Refused, match="not defined"):
        read(
            "%c: i1",
            """
            "scf.if"(%c) ({
              %0 = "arith.xori"(%c, %c) : (i1, i1) -> i1
              "scf.yield"() : () -> ()
            }, {
            }) : (i1) -> ()
            %1 = "arith.xori"(%0, %c) : (i1, i1) -> i1
            """,
        )
