"""Where accesses go: wrapped ranges, mixed element sizes, joined and computed pointers, and what depends on what."""

from __future__ import annotations

import pytest
from program_builder import I1, I32, I64, Kernel, launch, tensor

from racefree.access import Scope
from racefree.graph.launch import LaunchFacts, Storage
from racefree.graph.program import Data, Float, Op, Ptr
from racefree.proof.footprint import survey
from racefree.proof.rungs import Options, decide
from racefree.verdict import Status


def status(kernel: Kernel, facts: LaunchFacts, *, strict: bool = False) -> Status:
    return decide(kernel.program(), facts, Options(lanes="strict" if strict else "default", scope="launch")).status


@pytest.mark.parametrize(("byte", "racing"), [(0, True), (3, True), (4, False), (7, False)])
def test_single_bytes_against_words_listed_one_by_one(byte: int, racing: bool) -> None:
    """Bytes of every second word are stored; the other lanes' words are loaded in an order no lattice describes."""
    kernel = Kernel()
    small, wide = kernel.tensor("small", 1), kernel.tensor("wide", 4)
    lane = kernel.arange(64)
    kernel.store(kernel.at(small, kernel.add(kernel.mul(lane, 8), byte)))
    swapped = kernel.op("arith.xori", lane, kernel.const(1, I32, (64,)))
    kernel.load(kernel.at(wide, kernel.mul(swapped, 2)))
    storage = Storage(1 << 20, 4096)
    facts = launch(
        1,
        small=tensor(1 << 20, 4096, 1, storage=storage),
        wide=tensor(1 << 20, 1024, 4, storage=storage),
    )
    assert status(kernel, facts) is (Status.RACES if racing else Status.OK)


@pytest.mark.parametrize("meets", [True, False])
def test_a_tile_of_pointers_into_two_tensors(meets: bool) -> None:
    """Program 0 stores through a tile of pointers into both tensors; program 1 loads from the second."""
    kernel = Kernel()
    a, b = kernel.tensor("a"), kernel.tensor("b")
    pid, lane = kernel.pid(), kernel.arange(64)
    both = kernel.op("tt.join", kernel.at(a, lane), kernel.at(b, lane), shape=(64, 2))
    with kernel.when(kernel.cmp("eq", pid, 0)):
        kernel.store(both, kernel.const(1, I32, (64, 2)))
    with kernel.when(kernel.cmp("eq", pid, 1)):
        kernel.load(kernel.at(b, kernel.add(lane, 0 if meets else 64)))
    facts = launch(2, a=tensor(1 << 20, 64), b=tensor(1 << 30, 128))
    assert status(kernel, facts) is (Status.RACES if meets else Status.OK)


@pytest.mark.parametrize("stores_first", [True, False])
def test_a_pointer_moved_by_the_distance_between_two_tensors(stores_first: bool) -> None:
    kernel = Kernel()
    a, b = kernel.tensor("a"), kernel.tensor("b")
    pid = kernel.pid()
    start, goal = (kernel.op("tt.ptr_to_int", p, element=I64) for p in (a, b))
    distance = kernel.op("arith.divsi", kernel.sub(goal, start), kernel.const(4, I64))
    moved = kernel.at(a, distance)
    for program, pointer, writes in ((0, moved, stores_first), (1, b, not stores_first)):
        with kernel.when(kernel.cmp("eq", pid, program)):
            if writes:
                kernel.store(pointer)
            else:
                kernel.load(pointer)
    assert status(kernel, launch(2, a=tensor(1 << 20, 4), b=tensor(1 << 30, 4))) is Status.RACES


@pytest.mark.parametrize("element", [0, 1])
def test_a_pointer_loaded_from_a_table(element: int) -> None:
    kernel = Kernel()
    table, b = kernel.tensor("table", 8), kernel.tensor("b")
    pid = kernel.pid()
    found = kernel.load(table, element=Ptr(4))
    with kernel.when(kernel.cmp("eq", pid, 0)):
        kernel.load(found)
    with kernel.when(kernel.cmp("eq", pid, 1)):
        kernel.store(b)
    facts = launch(2, table=tensor(1 << 20, 1, 8, [(1 << 30) + 4 * element]), b=tensor(1 << 30, 4))
    # The store may hit the table as far as the roots of the pointers tell, but never where they are looked at.
    assert status(kernel, facts) is (Status.RACES if element == 0 else Status.OK)


@pytest.mark.parametrize("own", [True, False])
def test_elements_no_lattice_describes_are_taken_few_programs_at_a_time(
    own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "CELL_LIMIT", 1 << 13)
    kernel = Kernel()
    x = kernel.tensor("x")
    pid, lane = kernel.pid(), kernel.arange(64)
    swapped = kernel.op("arith.xori", lane, kernel.const(1, I32, (64,)))
    rows = kernel.op("tt.expand_dims", swapped, shape=(64, 1), axis=1)
    columns = kernel.op("tt.expand_dims", kernel.arange(32), shape=(1, 32), axis=0)
    offsets = kernel.add(
        kernel.op("tt.broadcast", rows, shape=(64, 32)),
        kernel.mul(kernel.op("tt.broadcast", columns, shape=(64, 32)), 64),
    )
    kernel.store(kernel.at(x, kernel.add(offsets, kernel.mul(pid, 2048 if own else 1984))))
    assert status(kernel, launch(40, x=tensor(1 << 20, 1 << 17))) is (Status.OK if own else Status.RACES)


def test_a_loop_over_nearly_all_of_64_bits() -> None:
    kernel = Kernel()
    x = kernel.tensor("x")
    bounds = [kernel.const(n, I64) for n in (-(1 << 63), (1 << 63) - 1, 1 << 62)]
    with kernel.loop(*bounds, element=I64):
        kernel.store(kernel.at(x, kernel.arange(4)))
    assert status(kernel, launch(2, x=tensor(1 << 20, 4))) is not Status.OK


# ---- data dependence ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("crossed", [True, False])
def test_each_half_of_a_joined_tile_depends_on_its_own_operand(crossed: bool) -> None:
    """x and y are loaded and stored back joined; crossed, the lanes that write x hold what came from y."""
    kernel = Kernel()
    x, y = kernel.tensor("x"), kernel.tensor("y")
    lane = kernel.arange(64)
    a, b = kernel.load(kernel.at(x, lane)), kernel.load(kernel.at(y, lane))
    joined = kernel.op("tt.join", a, b, shape=(64, 2))
    pointers = [kernel.at(p, lane) for p in ((y, x) if crossed else (x, y))]
    kernel.store(kernel.op("tt.join", *pointers, shape=(64, 2)), joined)
    found = status(kernel, launch(1, x=tensor(1 << 20, 64), y=tensor(1 << 30, 64)), strict=True)
    # No formula keeps the halves apart, so the straight twin is not proved; it must not be called a race.
    assert found is (Status.RACES if crossed else Status.UNSUPPORTED)


@pytest.mark.parametrize(("source", "clean"), [(0, True), (1, False)])
def test_results_scanned_together_depend_on_their_own_operand(source: int, clean: bool) -> None:
    kernel = Kernel()
    x, y = kernel.tensor("x"), kernel.tensor("y")
    lane = kernel.arange(64)
    a, b = kernel.load(kernel.at(x, lane)), kernel.load(kernel.at(y, lane))
    results = (kernel.value(Float(32), (64,)), kernel.value(Float(32), (64,)))
    kernel.emit(Data("tt.scan", results, (a, b), False, kernel.site()))
    kernel.store(kernel.at(x, lane), results[source])
    facts = launch(1, x=tensor(1 << 20, 64), y=tensor(1 << 30, 64))
    assert status(kernel, facts, strict=True) is (Status.OK if clean else Status.UNSUPPORTED)


# ---- booleans folded -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("combine", "holds"),
    [("max", False), ("min", True), ("maxu", True), ("minu", False), ("or", True), ("and", False), ("xor", True)],
)
def test_a_boolean_reduction_under_which_both_programs_store(combine: str, holds: bool) -> None:
    """Of two lanes one is true; as a signed number true is -1."""
    kernel = Kernel()
    x = kernel.tensor("x")
    kernel.pid()
    first = kernel.cmp("eq", kernel.arange(2), 0)
    result = kernel.value(I1)
    kernel.emit(Op("tt.reduce", (result,), (first,), {"axis": 0, "combine": combine}, kernel.site()))
    with kernel.when(result):
        kernel.store(x)
    assert status(kernel, launch(2, x=tensor(1 << 20, 4))) is (Status.RACES if holds else Status.OK)


# ---- atomics ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "bytes_apart", "expected"),
    [
        (Scope.GPU, 0, Status.OK),
        (Scope.CTA, 0, Status.RACES),
        (Scope.GPU, 2, Status.RACES),
        (Scope.GPU, 4, Status.OK),
    ],
)
def test_atomics_meet_on_whole_elements_only(scope: Scope, bytes_apart: int, expected: Status) -> None:
    kernel = Kernel()
    x = kernel.tensor("x", 2)
    offset = kernel.op("arith.divsi", kernel.mul(kernel.pid(), bytes_apart), kernel.const(2))
    kernel.atomic_add(kernel.op("tt.bitcast", kernel.at(x, offset), element=Ptr(4)), scope)
    assert status(kernel, launch(2, x=tensor(1 << 20, 64, 2))) is expected


@pytest.mark.parametrize("strict", [True, False])
def test_a_race_is_shown_where_its_loop_had_to_be_stepped(strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each iteration stores the same lanes, in an order no lattice describes: too many cells to fold the loop."""
    monkeypatch.setattr(survey, "CELL_LIMIT", 1 << 8)
    kernel = Kernel()
    x = kernel.tensor("x")
    kernel.pid()
    swapped = kernel.op("arith.xori", kernel.arange(64), kernel.const(1, I32, (64,)))
    with kernel.loop(0, 6):
        kernel.store(kernel.at(x, swapped))
    assert status(kernel, launch(2, x=tensor(1 << 20, 64)), strict=strict) is Status.RACES


@pytest.mark.parametrize("far", [True, False])
def test_an_address_far_off_its_tensor_is_not_taken_for_another_tensor(far: bool) -> None:
    kernel = Kernel()
    a, b = kernel.tensor("a"), kernel.tensor("b")
    pid = kernel.pid()
    # The storages of a launch are kept 2^48 bytes apart.
    offset = kernel.mul(kernel.op("arith.extsi", pid, element=I64), kernel.const((1 << 46) if far else 1, I64))
    kernel.store(kernel.at(a, offset))
    with kernel.when(kernel.cmp("eq", pid, 0)):
        kernel.store(b)
    expected = Status.UNSUPPORTED if far else Status.OK
    assert status(kernel, launch(2, a=tensor(1 << 20, 64), b=tensor(1 << 30, 64))) is expected
