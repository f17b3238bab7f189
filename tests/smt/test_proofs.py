"""Proofs for any grid against enumeration on small grids, each beside a twin that must not be proved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import smt_kernels as k  # noqa: E402

from racefree.graph.launch import Argument, LaunchFacts, Scalar  # noqa: E402
from racefree.graph.program import Program  # noqa: E402
from racefree.proof.outcome import RungResult  # noqa: E402
from racefree.proof.replay import run_program  # noqa: E402
from racefree.proof.rungs import Options, decide  # noqa: E402
from racefree.proof.symbolic_rungs import strengthen  # noqa: E402
from racefree.triton.capture import capture_one  # noqa: E402
from racefree.ttir.read import read_program  # noqa: E402
from racefree.verdict import ASSUMES_IN_BOUNDS, ONE_THREAD_PER_LANE, READS_CONTENTS, assumes_no_overflow  # noqa: E402

I32 = assumes_no_overflow(32)
T0, T1 = "any-params-any-grid", "this-params-any-grid"


def ints(n: int) -> Any:
    return torch.zeros(n, dtype=torch.int32)


def launch(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> tuple[Program, LaunchFacts]:
    captured = capture_one(kernel, (), arguments, grid, target="cuda:80").configs[0]
    assert captured.module is not None
    assert captured.facts is not None
    return read_program(captured.module), captured.facts


def programs_conflict(program: Program, facts: LaunchFacts) -> bool:
    """Whether two program instances share a byte that one of them writes, inside the tensors."""
    tensors = [a for a in facts.arguments.values() if hasattr(a, "storage")]
    touched: dict[int, set[tuple[int, bool]]] = defaultdict(set)
    for x in range(facts.grid[0]):
        for y in range(facts.grid[1]):
            for event in run_program(program, facts, (x, y, 0)):
                for address in event.addresses[event.active].reshape(-1):
                    if any(t.storage.address <= address < t.storage.address + t.storage.nbytes for t in tensors):
                        touched[int(address)].add((x + 100 * y, event.access.kind.writes))
    return any(len({p for p, _ in who}) > 1 and any(w for _, w in who) for who in touched.values())


def prove(
    kernel: Any, grid: tuple[int, ...], *, decided: bool = False, **arguments: Any
) -> tuple[RungResult, Program, LaunchFacts]:
    program, facts = launch(kernel, grid, arguments)
    return strengthen(program, facts, decided=decided), program, facts


def permutation(n: int) -> Any:
    return (torch.arange(n, dtype=torch.int32) * 5) % n


CASES: dict[str, tuple[Any, tuple[int, ...], dict[str, Any], str | None, tuple[str, ...]]] = {
    # name: kernel, grid, arguments, scope proved (None: must not be), qualifiers
    "add": (k.add, (5,), {"x": ints(99), "o": ints(99), "n": 80, "STEP": 16, "BLOCK": 16}, T0, (I32,)),
    "add too close": (k.add, (5,), {"x": ints(99), "o": ints(99), "n": 80, "STEP": 15, "BLOCK": 16}, None, ()),
    "walk": (k.walk, (3,), {"x": ints(300), "o": ints(300), "n": 45, "PITCH": 48, "HOP": 16}, T1, (I32,)),
    "walk into the next": (k.walk, (3,), {"x": ints(300), "o": ints(300), "n": 49, "PITCH": 48, "HOP": 16}, None, ()),
    "backwards": (k.backwards, (3,), {"o": ints(90), "n": 9, "S": 20}, T1, (I32,)),
    "backwards too far": (k.backwards, (3,), {"o": ints(90), "n": 23, "S": 20}, None, ()),
    "swizzle beyond its groups": (k.swizzle, (15,), {"o": ints(15), "m": 5, "n": 3, "GROUP": 2}, None, ()),
    "tile": (k.tile, (2, 3), {"o": ints(132), "n": 11, "PITCH": 12, "TRANS": False}, T1, (I32,)),
    "tile with a short pitch": (k.tile, (2, 3), {"o": ints(132), "n": 11, "PITCH": 10, "TRANS": True}, None, ()),
    "bits": (k.bits, (2,), {"o": ints(400), "C": 5, "D": 31}, T0, (I32,)),
    "persistent": (k.persistent, (4,), {"o": ints(300), "n": 17, "BLOCK": 16}, T0, (I32,)),
    "grid stride": (k.grid_stride, (3,), {"o": ints(100), "n": 90, "BLOCK": 8, "ALL": True}, T0, (I32,)),
    "own stride": (k.grid_stride, (3,), {"o": ints(100), "n": 90, "BLOCK": 8, "ALL": False}, None, ()),
    "branch": (k.branch, (4,), {"o": ints(384), "n": 384, "ODD": 0}, T1, (I32,)),
    "scatter": (k.scatter, (2,), {"index": permutation(32), "o": ints(32)}, T1, (I32, READS_CONTENTS)),
    "masked scatter": (
        k.masked_scatter,
        (2,),
        {"index": permutation(21), "o": ints(21), "n": 21, "ALL": False},
        T1,
        (I32, READS_CONTENTS),
    ),
    "masked scatter to one cell": (
        k.masked_scatter,
        (2,),
        {"index": permutation(21), "o": ints(21), "n": 21, "ALL": True},
        None,
        (),
    ),
    "ranges": (k.ranged, (3,), {"starts": torch.tensor([0, 4, 4, 9], dtype=torch.int32), "o": ints(9)}, T1, (READS_CONTENTS,)),
    "ranges that meet": (
        k.ranged,
        (3,),
        {"starts": torch.tensor([0, 4, 3, 9], dtype=torch.int32), "o": ints(9)},
        None,
        (),
    ),
    "scatter twice": (k.scatter, (2,), {"index": permutation(32) // 2, "o": ints(32)}, None, ()),
    "rows": (k.rows, (5,), {"o": ints(99), "n": 19, "ROUND": False, "BLOCK": 32}, T0, (I32,)),
    "rows into the next": (k.rows, (5,), {"o": ints(99), "n": 19, "ROUND": True, "BLOCK": 32}, None, ()),
    "planes": (k.planes, (6,), {"o": ints(200), "n": 3, "m": 7, "SWAP": False, "BLOCK": 8}, T1, (I32,)),
    "planes and rows swapped": (k.planes, (6,), {"o": ints(200), "n": 4, "m": 7, "SWAP": True, "BLOCK": 8}, None, ()),
    "in place": (k.in_place, (3,), {"x": ints(900), "SHIFT": 0, "FENCE": False}, T0, (I32,)),
    "in place, shifted": (k.in_place, (3,), {"x": ints(900), "SHIFT": 1, "FENCE": False}, None, ()),
    "in place, shifted and fenced": (k.in_place, (3,), {"x": ints(900), "SHIFT": 1, "FENCE": True}, T0, (I32,)),
    "turned": (k.turned, (2,), {"o": ints(300), "n": 2, "BLOCK": 8}, None, ()),
    "laid along": (k.laid_along, (2,), {"o": ints(300), "n": 2, "BLOCK": 8}, None, ()),
    "in place, into the next": (k.in_place, (3,), {"x": ints(900), "SHIFT": 129, "FENCE": True}, None, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_any_grid(name: str) -> None:
    kernel, grid, arguments, scope, qualifiers = CASES[name]
    got, program, facts = prove(kernel, grid, **arguments)
    if scope is None:
        assert got.status == "passed"
        return
    assert (got.status, got.scope and got.scope.value) == ("proved", scope)
    assert set(got.qualifiers) - {ONE_THREAD_PER_LANE} == set(qualifiers)
    for x in range(1, 7):
        other = replace(facts, grid=(x, *facts.grid[1:]))
        if READS_CONTENTS in qualifiers and x > facts.grid[0]:
            break  # the next program may leave the table of contents
        for arguments in other_parameters(facts) if scope == T0 else [facts.arguments]:
            assert not programs_conflict(program, replace(other, arguments=arguments))


def other_parameters(facts: LaunchFacts) -> Iterator[dict[str, Argument]]:
    """The arguments of a launch with smaller and larger integers, which Triton specialises the kernel to in the same way."""
    integers = {n: a.value for n, a in facts.arguments.items() if isinstance(a, Scalar) and type(a.value) is int}
    for step in (-32, -16, 0, 16):
        yield facts.arguments | {name: Scalar(value + step) for name, value in integers.items()}


def longs(values: list[int]) -> Any:
    return torch.tensor(values, dtype=torch.int64)


SEQUENCES = [5, 0, 17, 8, 4]
MANY = [3 + 5 * (i % 3) for i in range(40)]


@pytest.mark.parametrize("fault", ["", "a chunk twice", "sequences that meet", "a wider chunk"])
@pytest.mark.parametrize("lengths", [SEQUENCES, MANY], ids=["few sequences", "many sequences"])
def test_chunks_of_sequences(lengths: list[int], fault: str) -> None:
    """Tables of few runs are told to integer sets as they are, longer ones by what holds for them as a whole."""
    rows = [(n, c) for n, length in enumerate(lengths) for c in range(-(-length // 8))]
    starts = [sum(lengths[:n]) for n in range(len(lengths) + 1)]
    if fault == "a chunk twice":
        rows[2] = rows[1]
    if fault == "sequences that meet":
        starts[3] = 2
    tables = {"table": longs([x for row in rows for x in row]), "starts": longs(starts), "o": ints(starts[-1])}
    width = 16 if fault == "a wider chunk" else 8
    got, program, facts = prove(k.chunks, (len(rows),), decided=True, **tables, WIDTH=width, BLOCK=8)
    assert programs_conflict(program, facts) is bool(fault)
    assert not fault or got.status == "passed"
    if lengths is SEQUENCES and not fault:
        assert got.scope is not None
        assert got.scope.value == T1
        assert READS_CONTENTS in got.qualifiers


EXCHANGES = [
    ((front, back, buffers), front and (back or buffers == 2))
    for front in (True, False)
    for back in (True, False)
    for buffers in (1, 2)
]


@pytest.mark.parametrize(("which", "clean"), EXCHANGES)
def test_barriers_in_a_loop(which: tuple[bool, bool, int], clean: bool) -> None:
    front, back, buffers = which
    arguments = {"x": ints(900), "o": ints(3 * 6 * 128), "n": 4, "FRONT": front, "BACK": back, "BUFFERS": buffers}
    got, _, _ = prove(k.exchange, (3,), **arguments)
    assert got.status == ("proved" if clean else "passed")


def test_a_barrier_does_not_bring_several_blocks_of_a_program_together() -> None:
    arguments = {"x": ints(900), "o": ints(3 * 6 * 128), "n": 4, "FRONT": True, "BACK": True, "BUFFERS": 1}
    program, facts = launch(k.exchange, (3,), arguments)
    assert strengthen(program, replace(facts, num_ctas=2), decided=False).status == "passed"


@pytest.mark.parametrize("far", [0, 1000])
def test_a_launch_that_leaves_its_tensors_says_so_for_any_grid_too(far: int) -> None:
    got = decide(*launch(k.strays, (4,), {"o": ints(8), "FAR": far}), Options())
    assert got.scope is not None
    assert got.scope.value == T0
    assert (ASSUMES_IN_BOUNDS in got.qualifiers) == bool(far)


@pytest.mark.parametrize("fence", [True, False])
def test_a_barrier_after_an_early_return(fence: bool) -> None:
    got, _, _ = prove(k.early, (3,), x=ints(900), o=ints(900), n=3, FENCE=fence)
    assert got.status == ("proved" if fence else "passed")


def test_no_proof_for_any_grid_where_the_next_grids_wrap() -> None:
    got, _, _ = prove(k.wraps, (2,), o=ints(3), BIG=1 << 30)
    assert got.refusal is not None
    assert got.refusal.kind == "integer-overflow"


def test_a_race_of_another_grid_is_evidence() -> None:
    got, program, facts = prove(k.add, (1,), x=ints(99), o=ints(99), n=80, STEP=8, BLOCK=16)
    assert got.status == "passed"
    assert got.grid_fragile
    (race, *_) = got.grid_fragile
    wide = replace(facts, grid=(max(race.first.program[0], race.second.program[0]) + 1, 1, 1))
    assert programs_conflict(program, wide)
    assert race.first.address_bytes == race.second.address_bytes


def test_a_spent_budget_is_no_proof() -> None:
    program, facts = launch(k.add, (5,), {"x": ints(99), "o": ints(99), "n": 80, "STEP": 16, "BLOCK": 16})
    got = strengthen(program, facts, decided=True, scale=0.0)
    assert got.status == "passed"


def test_lanes_may_be_asked_to_be_strict() -> None:
    """Without the rule that one thread owns a lane, rounds of a loop that store one tile race."""
    program, facts = launch(k.walk, (2,), {"x": ints(300), "o": ints(300), "n": 45, "PITCH": 64, "HOP": 0})
    assert strengthen(program, facts, decided=False, strict_lanes=True).status == "passed"


def test_an_interrupt_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    import z3

    program, facts = launch(k.add, (5,), {"x": ints(99), "o": ints(99), "n": 80, "STEP": 15, "BLOCK": 16})
    monkeypatch.setattr(z3.Solver, "check", lambda self, *a: z3.unknown)
    monkeypatch.setattr(z3.Solver, "reason_unknown", lambda self: "interrupted from keyboard")
    with pytest.raises(KeyboardInterrupt):
        strengthen(program, facts, decided=False)


@pytest.mark.parametrize("how", ["by turns", "counted on", "in the first round", "in the last round"])
def test_what_an_earlier_round_has_computed_may_wrap(how: str) -> None:
    near, _, _ = prove(k.handed_on, (4,), o=ints(99), n=3, HOW=how)
    assert (near.status, near.scope and near.scope.value) == ("proved", T0)
    assert I32 in near.qualifiers
    far, _, _ = prove(k.handed_on, (300,), o=ints(9999), n=3, HOW=how)
    assert (far.status, far.refusal and far.refusal.kind) == ("passed", "integer-overflow")


TICKETS = [
    (1, 4, "gpu", "none", True),
    (3, 4, "gpu", "none", True),
    (1, 3, "gpu", "none", False),
    (0, 4, "gpu", "none", False),
    (2, 4, "gpu", "none", True),
    (1, 4, "cta", "none", False),
    (1, 4, "gpu", "reset", False),
]


@pytest.mark.parametrize(("step", "width", "scope", "other", "proved"), TICKETS)
def test_tickets(step: int, width: int, scope: str, other: str, proved: bool) -> None:
    arguments = {"head": ints(1), "o": ints(9000), "STEP": step, "WIDTH": width, "SCOPE": scope, "OTHER": other}
    got, _, _ = prove(k.tickets, (4,), decided=True, **arguments)
    assert got.status == ("proved" if proved else "passed")
    assert not proved or I32 in got.qualifiers
    undecided, _, _ = prove(k.tickets, (4,), **arguments)
    assert undecided.status == "passed"  # what the counter holds is not known, so the product may wrap at this launch


@pytest.mark.parametrize(
    ("initial", "step", "proved"),
    [(0, 1, True), (-7, 1, True), (-(1 << 30), 1, False), (0, -1, False), ((1 << 31) - 8, 1, False)],
)
def test_a_counter_stays_on_the_side_to_which_it_is_counted(initial: int, step: int, proved: bool) -> None:
    """So that no product of a ticket wraps at a launch that nothing else has decided: the bound is on the other side.

    A counter that might be counted past the end of its integers does not stay there.
    """
    got, _, _ = prove(k.queue, (4,), head=ints(1) + initial, o=ints(99), total=9, STEP=step)
    assert got.status == ("proved" if proved else "passed")
    assert not proved or I32 in got.qualifiers


@pytest.mark.parametrize(
    ("old", "new", "wanted", "proved"), [(0, 1, 0, True), (0, 0, 0, False), (0, 1, 1, False), (5, 2, 5, True)]
)
def test_one_swap_succeeds(old: int, new: int, wanted: int, proved: bool) -> None:
    got, _, _ = prove(k.first, (4,), flag=ints(1), o=ints(1), OLD=old, NEW=new, WANTED=wanted)
    assert got.status == ("proved" if proved else "passed")


def test_a_ticket_not_drawn_is_no_ticket() -> None:
    got, _, _ = prove(k.masked_ticket, (4,), head=ints(1), o=ints(9))
    assert got.status == "passed"


LAST = [
    (sem, fence, early, initial, twice)
    for sem in ("acq_rel", "release", "acquire", "relaxed")
    for fence in (True, False)
    for early, initial, twice in ((0, 0, False), (1, 0, False), (0, 1, False), (0, 0, True))
]


@pytest.mark.parametrize("case", LAST)
def test_the_last_block_has_seen_all_others(case: tuple[str, bool, int, int, bool]) -> None:
    sem, fence, early, initial, twice = case
    arguments = {"part": ints(1024), "count": ints(1) + initial, "out": ints(128)}
    got, _, _ = prove(k.last_block, (4,), **arguments, SEM=sem, FENCE=fence, EARLY=early, TWICE=twice)
    clean = sem == "acq_rel" and fence and not early and not initial and not twice
    assert got.status == ("proved" if clean else "passed")
    assert not clean or (got.scope is not None and got.scope.value == T1 and READS_CONTENTS in got.qualifiers)


def test_threads_prove_side_by_side() -> None:
    """Nothing of the solver is shared: four threads find what one finds."""
    launches = [launch(CASES[n][0], CASES[n][1], CASES[n][2]) for n in ("add", "persistent", "scatter twice", "tile")]
    wanted = [CASES[n][3] for n in ("add", "persistent", "scatter twice", "tile")]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: strengthen(*x, decided=False, scale=4.0), launches * 3))
    assert [r.scope.value if r.scope else None for r in found] == wanted * 3


@pytest.mark.parametrize("shift", [False, True])
def test_a_permutation_of_lanes_is_no_dependence_lane_for_lane(shift: bool) -> None:
    got, _, _ = prove(k.gathered, (2,), x=ints(64), SHIFT=shift)
    assert got.status == ("passed" if shift else "proved")


@pytest.mark.parametrize("equal", [True, False])
def test_two_tensors_do_not_hold_the_same(equal: bool) -> None:
    """Reads at one offset of two tensors are two values, so no proof for any contents exists."""
    a, b = torch.tensor([3, 4, 6], dtype=torch.int32), torch.tensor([3, 4, 6 if equal else 7], dtype=torch.int32)
    got, _, _ = prove(k.two_tables, (3,), a=a, b=b, o=ints(8))
    assert got.status == ("proved" if equal else "passed")
    assert not equal or READS_CONTENTS in got.qualifiers
