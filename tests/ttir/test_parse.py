"""From generic text to an operation tree, and the ways it fails closed."""

from __future__ import annotations

import pytest

from racefree.errors import InputError, Refused
from racefree.ttir.generic import GenericModule, generic_form_of_text
from racefree.ttir.parse import parse
from racefree.ttir.tree import Dense, Frame, Location, Operation, Raw, Symbol, walk

MODULE = """
#loc = loc("k.py":1:1)
#loc5 = loc("x"(#loc4))
"builtin.module"() ({
  "tt.func"() <{sym_name = "k"}> ({
  ^bb0(%x: i32 loc("x"(#loc))):
    %0:2 = "a.b"(%x, %x) {LINE} : (i32, i32) -> (i32, i64) loc(LOC)
    "tt.return"() : () -> () loc(#loc5)
  }) : () -> ()
}) : () -> ()
#loc1 = loc("k.py":7:3)
#loc2 = loc("h.py":9:5)
#loc3 = loc(callsite(#loc2 at #loc1))
#loc4 = loc(unknown)
"""


def _operation(line: str = "", location: str = "#loc1") -> Operation:
    text = MODULE.replace("LINE", line).replace("LOC", location)
    return next(op for op in walk(parse(GenericModule(text, census=None))) if op.name == "a.b")


def test_operands_results_and_types() -> None:
    op = _operation()
    assert (op.operands, op.results) == (("%x", "%x"), ("%0#0", "%0#1"))
    assert (op.operand_types, op.result_types) == (("i32", "i32"), ("i32", "i64"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-3 : i32", -3),
        ("true", True),
        ('"a b"', "a b"),
        (r'"\C3\A9 \22 \\ \0A"', 'é " \\ \n'),
        ("@f", Symbol("f")),
        ('@"m.f__i32"', Symbol("m.f__i32")),
        ("unit", Raw("unit")),
        ("1.0 : f32", Raw("1.0 : f32")),
        ("array<i32: 1, -2>", (1, -2)),
        ("array<i1: true, false>", (True, False)),
        ("array<i32>", ()),
        ("[1 : i32, true]", (1, True)),
        ("{b = 1 : i32}", {"b": 1}),
        ("dense<5> : tensor<4xi32>", Dense((5,), splat=True)),
        ("dense<[1, 2]> : tensor<2xi32>", Dense((1, 2), splat=False)),
        ("dense<[true, false]> : tensor<2xi1>", Dense((1, 0), splat=False)),
        ("dense<[5]> : tensor<1xi32>", Dense((5,), splat=False)),
        ("dense<1.0> : tensor<4xf32>", Raw("dense<1.0> : tensor<4xf32>")),
        ("dense<0x7F800000> : tensor<4xf32>", Raw("dense<0x7F800000> : tensor<4xf32>")),
        ("0x7F800000 : f32", Raw("0x7F800000 : f32")),
        ("#arith.overflow<none>", Raw("#arith.overflow<none>")),
    ],
)
def test_attributes(text: str, value: object) -> None:
    found = _operation(f"a = {text}").attributes["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("#loc1", Location((Frame("k.py", 7, 3),))),
        ("unknown", Location()),
        (r'"d\C3\A9f.py":2:4', Location((Frame("déf.py", 2, 4),))),
        ('"f.py":2:4', Location((Frame("f.py", 2, 4),))),
        ('"f.py":2:4 to :9', Location((Frame("f.py", 2, 4),))),
        ('"f.py":2:4 to 3:9', Location((Frame("f.py", 2, 4),))),
        ("#loc3", Location((Frame("h.py", 9, 5), Frame("k.py", 7, 3)))),
        ('callsite("e.py":1:1 at #loc3)', Location((Frame("e.py", 1, 1), Frame("h.py", 9, 5), Frame("k.py", 7, 3)))),
        ('"y"(#loc3)', Location((Frame("h.py", 9, 5), Frame("k.py", 7, 3)), "y")),
        ('"y"("z"(#loc1))', Location((Frame("k.py", 7, 3),), "z")),
        ("fused[#loc4, #loc2]", Location((Frame("h.py", 9, 5),))),
        ('fused<"why">[#loc2, #loc1]', Location((Frame("h.py", 9, 5),))),
    ],
)
def test_locations(text: str, location: Location) -> None:
    assert _operation(location=text).location == location


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not a module",
        MODULE.replace("LINE", "a = ").replace("LOC", "#loc1"),
        MODULE.replace("LINE", "").replace("LOC", "#loc99"),
        MODULE.replace("LINE", "a = 1 : i32, a = 2 : i32").replace("LOC", "#loc1"),
        MODULE.replace("(%x, %x)", "(%x)").replace("LINE", "").replace("LOC", "#loc1"),
        MODULE.replace("%0:2", "%0:3").replace("LINE", "").replace("LOC", "#loc1"),
        MODULE.replace("LINE", "").replace("LOC", "#loc1") + '"tt.func"() : () -> ()',
        MODULE.replace('"tt.return"()', "tt.return").replace("LINE", "").replace("LOC", "#loc1"),
    ],
)
def test_text_that_is_not_understood_refuses(text: str) -> None:
    with pytest.raises(Refused, match="parse") as refused:
        parse(GenericModule(text, census=None))
    assert refused.value.refusal.kind == "parse"


CENSUS = {("tt.func", 0, 0, 1): 1, ("a.b", 2, 2, 0): 1, ("tt.return", 0, 0, 0): 1}


def test_an_operation_lost_or_gained_refuses() -> None:
    text = MODULE.replace("LINE", "").replace("LOC", "#loc1")
    assert parse(GenericModule(text, census=CENSUS)).name == "builtin.module"
    for census in ({**CENSUS, ("tt.store", 2, 0, 0): 1}, {**CENSUS, ("a.b", 2, 2, 0): 2}, {("tt.func", 0, 0, 1): 1}):
        with pytest.raises(Refused, match="Triton counted"):
            parse(GenericModule(text, census=census))


def test_generic_text_needs_no_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "triton", None)
    text = MODULE.replace("LINE", "").replace("LOC", "#loc1")
    assert generic_form_of_text(text) == GenericModule(text, census=None)


def test_text_triton_cannot_read_is_an_input_error() -> None:
    pytest.importorskip("triton")
    with pytest.raises(InputError, match="cannot read this TTIR"):
        generic_form_of_text("module {\n  tt.nonsense\n}\n")
