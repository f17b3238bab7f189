"""Which argument a compiled parameter is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from racefree.errors import Refused
from racefree.graph.program import Program

Read = Callable[..., Program]


def _names(program: Program) -> list[tuple[str, str]]:
    return [(parameter.name, parameter.part) for parameter in program.parameters]


def test_the_innermost_name_is_the_parameters(read: Read) -> None:
    program = read('%0: i32 loc("a"("b"("k.py":1:1))), %1: i32 loc("b"("a"("k.py":1:1)))', "")
    assert _names(program) == [("b", ""), ("a", "")]


def test_divisibility_is_read_from_the_function(read: Read) -> None:
    from racefree.ttir.generic import GenericModule
    from racefree.ttir.read import read_program

    text = """
"builtin.module"() ({
  "tt.func"() <{arg_attrs = [{tt.divisibility = 16 : i32, tt.x}, {}], function_type = () -> (), sym_name = "k"}> ({
  ^bb0(%a: !tt.ptr<f32>, %b: i32):
    "tt.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
    parameters = read_program(GenericModule(text, census=None)).parameters
    assert [(parameter.name, parameter.divisibility) for parameter in parameters] == [("a", 16), ("b", 1)]


HOST = [
    "%p: !tt.ptr<f16>",
    "%h: i64",
    "%w: i64",
    "%s: i64",
    "%t: i64",
    "%a: i1",
    "%b: i1",
    "%c: i32",
    "%d: i32",
    "%e: i64",
    "%f: i64",
]
PARTS = [
    "",
    "shape0",
    "shape1",
    "stride0",
    "stride1",
    "padding",
    "roundF32ToTF32",
    "shape0",
    "shape1",
    "stride0",
    "stride1",
]


def test_parts_with_names_of_their_own(read: Read) -> None:
    names = ["d", *(f"d.{n}" for n in ("shape.0", "shape.1", "stride.0", "stride.1", "padding", "roundF32ToTF32"))]
    names += names[1:5]
    parameters = ", ".join(f'{text} loc("{name}"(unknown))' for text, name in zip(HOST, names, strict=True))
    assert _names(read(parameters, "")) == [("d", part) for part in PARTS]


def test_parts_that_all_have_the_arguments_name(read: Read) -> None:
    parameters = ", ".join(f'{text} loc("d"(unknown))' for text in HOST)
    assert _names(read(parameters, "")) == [("d", part) for part in PARTS]


def test_tuple_elements_that_cannot_be_told_apart_refuse(read: Read) -> None:
    with pytest.raises(Refused, match="tuple"):
        read('%a: !tt.ptr<f16> loc("t"(unknown)), %b: i64 loc("t"(unknown))', "")


def test_a_name_for_two_arguments_refuses(read: Read) -> None:
    with pytest.raises(Refused, match="named t"):
        read('%a: i32 loc("t"(unknown)), %b: i32 loc("u"(unknown)), %c: i32 loc("t"(unknown))', "")


def test_a_dotted_name_without_its_owner_is_a_tuple_element(read: Read) -> None:
    program = read('%a: i32 loc("t.shape.0"(unknown)), %b: i32 loc("t.1"(unknown))', "")
    assert _names(program) == [("t.shape.0", ""), ("t.1", "")]
