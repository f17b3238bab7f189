"""Every synchronisation present or absent: clean exactly when a formula says so, and never proved otherwise."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from schedule_kernels import (  # noqa: E402
    accumulated,
    cells_and_locks,
    counted_by_bytes,
    counted_under_lock,
    forwarded,
    handed_round,
    last_block,
    load_buffering,
    lock,
    message,
    never_given_back,
    never_set,
    store_buffering,
    tickets,
)

from racefree.proof.confirm import CONFIRMED  # noqa: E402
from racefree.proof.memory_model import MemoryModel, memory_model  # noqa: E402
from racefree.proof.outcome import RungResult  # noqa: E402
from racefree.proof.rungs import Options  # noqa: E402
from racefree.proof.rungs import decide as decide_launch  # noqa: E402
from racefree.proof.schedule import Budget, decide  # noqa: E402
from racefree.triton.capture import capture_one  # noqa: E402
from racefree.ttir.read import read_program  # noqa: E402
from racefree.verdict import ASSUMES_TERMINATION, READS_CONTENTS, ProofScope, Status  # noqa: E402

T38 = memory_model("3.8.0", "cuda:80")
T39 = memory_model("3.9.0", "cuda:80")


def ints(*shape: int, value: int = 0) -> Any:
    return torch.full(shape, value, dtype=torch.int32)


def run(kernel: Any, grid: int, model: MemoryModel = T38, budget: Budget | None = None, **arguments: Any) -> RungResult:
    captured = capture_one(kernel, (), arguments, (grid,), target="cuda:80").configs[0]
    assert captured.failure is None
    assert captured.module is not None
    assert captured.facts is not None
    return decide(read_program(captured.module), captured.facts, model=model, budget=budget)


@pytest.mark.parametrize("model", [T38, T39], ids=["3.8", "3.9"])
@pytest.mark.parametrize("release", ["release", "relaxed"])
@pytest.mark.parametrize("acquire", ["acquire", "relaxed"])
@pytest.mark.parametrize("scope", ["gpu", "cta"])
@pytest.mark.parametrize("fence", [True, False])
def test_message(model: MemoryModel, release: str, acquire: str, scope: str, fence: bool) -> None:
    arguments = {"data": ints(128), "flag": ints(1), "out": ints(512)}
    got = run(message, 3, model, **arguments, REL=release, ACQ=acquire, SCOPE=scope, FENCE=fence)
    fenced = fence or model.barrier_before_release
    if release == "release" and acquire == "acquire" and scope == "gpu" and fenced:
        assert (got.status, got.scope) == ("proved", ProofScope.THIS_PARAMS_THIS_GRID)
        assert got.qualifiers == (ASSUMES_TERMINATION, READS_CONTENTS)
    else:
        assert got.status == "races"


LOCKS = list(itertools.product(("acquire", "relaxed"), ("release", "relaxed"), (1, 0)))


@pytest.mark.parametrize(("take", "give", "fence"), LOCKS)
def test_lock(take: str, give: str, fence: int) -> None:
    arguments = {"acc": ints(128), "held": ints(1), "x": ints(512)}
    got = run(lock, 3, **arguments, TAKE=take, GIVE=give, FENCE=fence, NARROW=True)
    assert got.status == ("proved" if (take, give, fence) == ("acquire", "release", 1) else "races")


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("fence", [True, False])
@pytest.mark.parametrize("early", [0, 1])
def test_last_block(sem: str, fence: bool, early: int) -> None:
    got = run(last_block, 4, part=ints(512), count=ints(1), out=ints(128), SEM=sem, FENCE=fence, EARLY=early)
    assert got.status == ("proved" if sem == "acq_rel" and fence and not early else "races")


def test_an_unknown_version_neither_proves_nor_refutes_what_an_added_barrier_decides() -> None:
    arguments = {
        "data": ints(128),
        "flag": ints(1),
        "out": ints(512),
        "REL": "release",
        "ACQ": "acquire",
        "SCOPE": "gpu",
    }
    got = run(message, 2, memory_model("4.0.0", "hip:gfx942"), **arguments, FENCE=False)
    assert got.status == "passed"
    assert got.refusal is not None
    assert got.refusal.kind == "potential-race"
    assert run(message, 2, memory_model("4.0.0", "hip:gfx942"), **arguments, FENCE=True).status == "proved"


def test_a_poll_may_read_an_old_value() -> None:
    """No interleaving lets both programs read 0, but two plain acquire loads may both do so."""
    got = run(store_buffering, 2, flags=ints(2), out=ints(1), SEM="acq_rel")
    assert got.status == "passed"
    assert got.refusal is not None
    assert got.refusal.kind == "potential-race"


@pytest.mark.parametrize(("read", "write", "proved"), [
    ("relaxed", "relaxed", False), ("acquire", "relaxed", True), ("relaxed", "release", True), ("acquire", "release", True),
])  # fmt: skip
def test_a_relaxed_write_may_overtake_a_relaxed_read(read: str, write: str, proved: bool) -> None:
    got = run(load_buffering, 2, flags=ints(2), out=ints(1), READ=read, WRITE=write)
    assert got.status == ("proved" if proved else "passed")
    assert proved or (got.refusal is not None and got.refusal.kind == "relaxed-order")


def test_order_is_handed_on_only_by_those_who_acquired_it() -> None:
    arguments = {"data": ints(128), "flag": ints(2), "out": ints(128)}
    assert run(forwarded, 3, **arguments, SEM="acquire").status == "proved"
    assert run(forwarded, 3, **arguments, SEM="relaxed").status == "races"


def test_a_launch_nobody_of_which_ends_is_no_proof() -> None:
    got = run(never_set, 2, data=ints(2), flag=ints(1))
    assert got.refusal is not None
    assert got.refusal.kind == "vacuous"
    assert run(never_set, 2, data=ints(2), flag=ints(1, value=1)).status == "proved"


@pytest.mark.parametrize("sem", ["relaxed", "acq_rel"])
def test_a_store_that_only_one_program_gets_to_is_no_race(sem: str) -> None:
    """The footprints see both stores behind the loop; no interleaving lets a second program out of it."""
    arguments = {"data": ints(1), "lock": ints(1), "SEM": sem}
    captured = capture_one(never_given_back, (), arguments, (2,), target="cuda:80").configs[0]
    assert captured.module is not None
    assert captured.facts is not None
    found = decide_launch(read_program(captured.module), captured.facts, Options(scope="launch"))
    assert found.status is Status.UNSUPPORTED
    assert found.refusal is not None
    assert found.refusal.kind == "vacuous"


@pytest.mark.parametrize(("step", "width", "racing"), [(1, 1, False), (0, 1, True), (4, 4, False), (3, 4, True)])
def test_tickets(step: int, width: int, racing: bool) -> None:
    got = run(tickets, 9, head=ints(1), out=ints(64), STEP=step, WIDTH=width)
    assert got.status == ("races" if racing else "proved")


@pytest.mark.parametrize(("step", "racing"), [(4, False), (0, False), (2, True)])
def test_atomics_of_one_program_that_overlap_in_part(step: int, racing: bool) -> None:
    got = run(counted_by_bytes, 2, data=torch.zeros(1024, dtype=torch.int8), head=ints(1), STEP=step)
    assert got.status == ("races" if racing else "proved")
    assert all(race.first.program == race.second.program for race in got.races)


def test_the_budget_is_a_refusal() -> None:
    got = run(last_block, 4, budget=Budget(transitions=10), part=ints(512), count=ints(1), out=ints(128), SEM="acq_rel",
              FENCE=True, EARLY=0)  # fmt: skip
    assert got.refusal is not None
    assert got.refusal.kind == "schedule-budget"


@pytest.mark.parametrize("fence", [1, 0])
@pytest.mark.parametrize(("few", "found"), [(4, True), (1, False)])
def test_a_crowd_with_too_many_interleavings_may_race_among_its_first_few(fence: int, few: int, found: bool) -> None:
    """And proves nothing when they do not."""
    budget = Budget(transitions=400, opening=few)
    arguments = {"acc": ints(128), "held": ints(1), "x": ints(64 * 128), "TAKE": "acquire", "GIVE": "release"}
    got = run(lock, 64, budget=budget, **arguments, FENCE=fence, NARROW=True)
    if found and not fence:
        assert got.status == "races"
        assert all(race.first.program[0] < few and race.second.program[0] < few for race in got.races)
    else:
        assert got.refusal is not None
        assert got.refusal.kind == "schedule-budget"


def test_a_grid_of_one_program_has_no_race_between_programs() -> None:
    arguments = {"data": ints(128), "flag": ints(1), "out": ints(512)}
    assert run(message, 1, **arguments, REL="relaxed", ACQ="relaxed", SCOPE="cta", FENCE=False).status == "proved"


def test_a_race_names_its_schedule() -> None:
    got = run(
        message, 2, data=ints(128), flag=ints(1), out=ints(512), REL="relaxed", ACQ="acquire", SCOPE="gpu", FENCE=True
    )
    (race,) = got.races
    assert (race.race_type, race.first.program, race.second.program) == ("RAW", (0, 0, 0), (1, 0, 0))
    assert race.first.address_bytes == race.second.address_bytes
    assert [(program[0], value) for program, _, value in race.schedule][-2:] == [(0, 0), (1, 1)]


def test_running_out_of_time_makes_no_race() -> None:
    """Before it is known who shares a cell, two instances that exclude each other look as if both could win."""
    for seconds in (0.0, 0.001, 30.0):
        budget = Budget(transitions=40, seconds=seconds)
        got = run(lock, 6, budget=budget, acc=ints(128), held=ints(1), x=ints(1024), TAKE="acquire", GIVE="release",
                  FENCE=1, NARROW=True)  # fmt: skip
        assert got.status == "passed"


@pytest.mark.parametrize("model", [T38, T39], ids=["3.8", "3.9"])
@pytest.mark.parametrize(("decided", "done"), list(itertools.product((1, 0), (1, 0))))
def test_partial_sums_under_a_lock(model: MemoryModel, decided: int, done: int) -> None:
    """Every thread loads the count to branch on it; one of them overwrites it, maybe before the others have loaded it."""
    arguments = {"acc": ints(256), "locks": ints(4), "x": ints(512)}
    got = run(accumulated, 4, model, **arguments, GROUPS=2, DECIDED=decided, DONE=done)
    clean = model.barrier_before_release or (decided and done)
    assert got.status == ("proved" if clean else "races")
    inside = [r for r in got.races if r.first.program == r.second.program]
    assert bool(inside) == (not model.barrier_before_release and not decided)
    assert all((r.race_type, r.first.access.kind.value) == ("WAR", "load") for r in inside)


def test_what_a_branch_hangs_on_is_in_doubt_where_barriers_may_be_added() -> None:
    arguments = {"acc": ints(256), "locks": ints(4), "x": ints(512)}
    got = run(accumulated, 2, memory_model("4.0.0", "hip:gfx942"), **arguments, GROUPS=2, DECIDED=0, DONE=1)
    assert got.refusal is not None
    assert got.refusal.kind == "potential-race"


@pytest.mark.parametrize(("cells", "locks", "fence"), [(8, 8, True), (8, 24, True), (24, 8, True), (8, 8, False)])
def test_two_programs_of_many_race_by_themselves(cells: int, locks: int, fence: bool) -> None:
    """A thousand programs interleave in too many ways, but the two that share a cell need no other."""
    arguments = {"acc": ints(24 * 128), "locks": ints(24), "CELLS": cells, "LOCKS": locks, "FENCE": fence}
    captured = capture_one(cells_and_locks, (), arguments, (1024,), target="cuda:80").configs[0]
    assert captured.module is not None
    assert captured.facts is not None
    found = decide_launch(read_program(captured.module), captured.facts, Options())
    assert found.status is (Status.OK if fence and cells % locks == 0 else Status.RACES)
    assert {race.witness for race in found.races} <= {CONFIRMED}


@pytest.mark.parametrize("fence", [True, False])
@pytest.mark.parametrize("told", [True, False])
def test_few_steps_after_a_race_show_the_others(fence: bool, told: bool) -> None:
    """A race inside one instance ends the search too, but not before what programs do to each other has been seen."""
    budget = Budget(transitions=1_000_000, after_race=100, seconds=1e6)
    arguments = {"acc": ints(256), "held": ints(1), "used": ints(1), "FENCE": fence, "TOLD": told}
    grid = 2 if fence and told else 6
    got = run(counted_under_lock, grid, budget=budget, **arguments)
    between = [race for race in got.races if race.first.program != race.second.program]
    inside = [race for race in got.races if race.first.program == race.second.program]
    assert got.status == ("proved" if fence and told else "races")
    assert bool(inside) is not told
    assert bool(between) is not fence


@pytest.mark.parametrize("fence", [True, False])
@pytest.mark.parametrize("programs", [2, 3, 4])
def test_a_race_that_needs_no_stale_read_is_not_taken_for_one_that_does(programs: int, fence: bool) -> None:
    """Looking again at an old value changes nothing, and must not make a doubt of all that follows."""
    arguments = {"rows": ints(1024), "count": ints(1), "ROUNDS": 3, "WIDTH": 32, "FENCE": fence}
    got = run(handed_round, programs, budget=Budget(transitions=2_000), **arguments)
    assert (got.status == "races") is not fence
    assert got.status != "passed" or programs > 2  # too many interleavings to prove it
