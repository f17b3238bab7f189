"""Accesses and barriers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from racefree.access import Scope, Sem
from racefree.errors import Refused
from racefree.graph.program import Access, Barrier, Program

Shown = Callable[..., list[str]]
Read = Callable[..., Program]

POINTERS = "%p: tensor<8x!tt.ptr<f16>>, %m: tensor<8xi1>, %x: tensor<8xf16>, %s: !tt.ptr<i32>, %i: i32"


@pytest.mark.parametrize(
    ("operands", "segments", "expected"),
    [
        ("%p", "1, 0, 0", "%5:8xf16 = #0 load 2B @%0"),
        ("%p, %m", "1, 1, 0", "%5:8xf16 = #0 load 2B @%0 where %1"),
        ("%p, %m, %x", "1, 1, 1", "%5:8xf16 = #0 load 2B @%0 where %1 else %2"),
    ],
)
def test_a_load_tells_mask_from_other(shown: Shown, operands: str, segments: str, expected: str) -> None:
    kinds = ", ".join(["tensor<8x!tt.ptr<f16>>", "tensor<8xi1>", "tensor<8xf16>"][: operands.count("%")])
    line = f"""
        %0 = "tt.load"({operands}) <{{isVolatile = false, operandSegmentSizes = array<i32: {segments}>}}>
        : ({kinds}) -> tensor<8xf16>
    """
    assert shown(POINTERS, line) == [expected]


def test_the_third_operand_of_a_store_is_its_mask(shown: Shown) -> None:
    assert shown(
        POINTERS,
        """
        "tt.store"(%p, %x) <{cache = 1 : i32, evict = 1 : i32}> : (tensor<8x!tt.ptr<f16>>, tensor<8xf16>) -> ()
        "tt.store"(%p, %x, %m) : (tensor<8x!tt.ptr<f16>>, tensor<8xf16>, tensor<8xi1>) -> ()
        "tt.store"(%s, %i) : (!tt.ptr<i32>, i32) -> ()
        """,
    ) == [
        "#0 store 2B @%0 with %2",
        "#1 store 2B @%0 with %2 where %1",
        "#2 store 4B @%3 with %4",
    ]


@pytest.mark.parametrize(
    ("number", "name"),
    list(enumerate(("and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "exch"), start=1)),
)
def test_an_atomic_update_keeps_its_operation(shown: Shown, number: int, name: str) -> None:
    line = f"""
        %0 = "tt.atomic_rmw"(%s, %i) <{{atomic_rmw_op = {number} : i32, scope = 1 : i32, sem = 1 : i32}}>
        : (!tt.ptr<i32>, i32) -> i32
    """
    assert shown(POINTERS, line) == [f"%5:i32 = #0 atomic_{name} relaxed gpu 4B @%3 with %4"]


SEMANTICS = {1: Sem.RELAXED, 2: Sem.ACQUIRE, 3: Sem.RELEASE, 4: Sem.ACQ_REL}
SCOPES = {1: Scope.GPU, 2: Scope.CTA, 3: Scope.SYSTEM}


@pytest.mark.parametrize("sem", SEMANTICS)
@pytest.mark.parametrize("scope", SCOPES)
def test_a_compare_and_swap_keeps_its_order(read: Read, sem: int, scope: int) -> None:
    line = f"""
        %0 = "tt.atomic_cas"(%s, %i, %i) <{{scope = {scope} : i32, sem = {sem} : i32}}> : (!tt.ptr<i32>, i32, i32) -> i32
    """
    (access,) = read(POINTERS, line).body
    assert isinstance(access, Access)
    assert (access.sem, access.scope) == (SEMANTICS[sem], SCOPES[scope])
    assert [value.index for value in access.operands] == [4, 4]


@pytest.mark.parametrize("change", ["sem = 9", "scope = 0", "atomic_rmw_op = 12"])
def test_unknown_orders_refuse(read: Read, change: str) -> None:
    known = {"sem": 1, "scope": 1, "atomic_rmw_op": 4}
    name, _, number = change.partition(" = ")
    known[name] = int(number)
    attributes = ", ".join(f"{key} = {value} : i32" for key, value in known.items())
    with pytest.raises(Refused, match="unknown"):
        read(POINTERS, f'%0 = "tt.atomic_rmw"(%s, %i) <{{{attributes}}}> : (!tt.ptr<i32>, i32) -> i32')


@pytest.mark.parametrize(
    ("spaces", "flags"),
    [
        (0, (False, False)),
        (1, (False, False)),
        (2, (True, False)),
        (4, (False, True)),
        (6, (True, True)),
        (31, (True, True)),
    ],
)
def test_a_barrier_orders_the_spaces_it_names(read: Read, spaces: int, flags: tuple[bool, bool]) -> None:
    (barrier,) = read("%i: i32", f'"ttg.barrier"() <{{addrSpace = {spaces} : i32}}> : () -> ()').body
    assert isinstance(barrier, Barrier)
    assert (barrier.global_read, barrier.global_write) == flags


def test_a_block_barrier_orders_global_memory(read: Read) -> None:
    (barrier,) = read("%i: i32", '"gpu.barrier"() : () -> ()').body
    assert isinstance(barrier, Barrier)
    assert barrier.global_read
    assert barrier.global_write


def test_a_block_barrier_for_some_memory_refuses(read: Read) -> None:
    with pytest.raises(Refused, match="limited"):
        read("%i: i32", '"gpu.barrier"() {address_spaces = [#gpu.address_space<workgroup>]} : () -> ()')


@pytest.mark.parametrize("kind", ["!tt.ptr<i32, 3>", "!tt.ptr<tensor<8xi32>>", "!ttg.memdesc<8xi32>"])
def test_an_access_to_other_memory_refuses(read: Read, kind: str) -> None:
    with pytest.raises(Refused, match="not modelled"):
        read(f"%p: {kind}, %i: i32", f'"tt.store"(%p, %i) : ({kind}, i32) -> ()')
