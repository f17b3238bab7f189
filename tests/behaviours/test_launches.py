"""What a launch as a whole answers: its configs, its records, what is told of it, and what is kept."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import behaviour_kernels as k
import pytest
import torch
import triton
import triton.language as tl
from deciding import ANY, THIS, ints

import racefree
from racefree.proof.rungs import Options, decide
from racefree.proof.symbolic.questions import copier
from racefree.proof.symbolic.terms import variable
from racefree.proof.symbolic.tiles import lane
from racefree.proof.symbolic.variables import grid_size, program_id
from racefree.report.live import LiveReport
from racefree.triton.capture import capture_one
from racefree.ttir.read import read_program
from racefree.verdict import Status


def tuned(*configs: triton.Config) -> triton.runtime.Autotuner:
    return triton.autotune(list(configs), key=[])(striding)


@triton.jit
def striding(o, STEP: tl.constexpr, WRAP: tl.constexpr):
    p = tl.program_id(0)
    if WRAP:
        p = p % WRAP
    tl.store(o + p * STEP + tl.arange(0, 16), 1)


@triton.jit
def certain_and_possible(o, x, keep):
    """All programs store to one place of `o`, and perhaps some to one of `x`."""
    p = tl.program_id(0)
    tl.store(o, p)
    tl.store(x, p, mask=tl.load(keep + p) != 0)


@pytest.fixture(autouse=True)
def _fresh_launches() -> Iterator[None]:
    racefree.launches.clear()
    yield
    racefree.launches.clear()


GOOD, SHORT = {"STEP": 16, "WRAP": 0}, {"STEP": 8, "WRAP": 0}


@pytest.mark.parametrize(("step", "status"), [(16, Status.UNSUPPORTED), (8, Status.RACES)])
def test_a_config_the_target_cannot_have_is_one_that_does_not_compile(step: int, status: Status) -> None:
    kernel = tuned(triton.Config({**GOOD, "STEP": step}), triton.Config(GOOD, num_ctas=2))
    verdict = racefree.analyze(kernel, ints(999), grid=(4,)).verdict
    assert verdict.status is status
    failed = verdict.configs[1]
    assert failed.config["num_ctas"] == 2
    assert failed.refusal is not None
    assert failed.refusal.kind == "compile-failed"
    assert "--target cuda:90" in failed.refusal.reason


def test_options_the_target_cannot_have_do_not_stop_the_program() -> None:
    with racefree.trace(racefree.RaceDetector(compile=True, on_launch=lambda launch: None)):
        striding[(4,)](ints(999), **GOOD, num_ctas=2)
        striding[(4,)](ints(999), **GOOD)
    assert [launch.verdict.status.value for launch in racefree.launches] == ["unsupported", "ok"]


def test_a_launch_is_proved_as_far_as_its_weakest_config() -> None:
    kernel = tuned(triton.Config(GOOD), triton.Config({"STEP": 16, "WRAP": 4}))
    verdict = racefree.analyze(kernel, ints(999), grid=(4,)).verdict
    assert [config.scope.value for config in verdict.configs if config.scope] == [ANY, THIS]
    assert verdict.scope is not None
    assert verdict.scope.value == THIS


def test_configs_that_differ_in_nothing_are_decided_once() -> None:
    verdict = racefree.analyze(
        tuned(
            triton.Config(GOOD, num_stages=2),
            triton.Config(GOOD, num_stages=3),
            triton.Config({"STEP": 32, "WRAP": 0}),
        ),
        ints(999),
        grid=(4,),
    ).verdict
    assert [config.status.value for config in verdict.configs] == ["ok"] * len(verdict.configs)
    assert sum(config.seconds > 0 for config in verdict.configs) == 2


def test_launches_that_differ_in_grid_or_contents_are_decided_apart() -> None:
    both = torch.tensor([0, 1, 1], dtype=torch.int32)
    one = torch.tensor([0, 1, 0], dtype=torch.int32)
    detector = racefree.RaceDetector(compile=True, on_launch=lambda launch: None)
    with racefree.trace(detector):
        k.parity[(2,)](ints(2))
        k.parity[(3,)](ints(2))
        k.meeting_unless_masked[(3,)](ints(16), one)
        k.meeting_unless_masked[(3,)](ints(16), both)
    assert [launch.verdict.status.value for launch in racefree.launches] == ["ok", "races", "ok", "races"]


def test_what_only_may_race_is_no_record_beside_a_race() -> None:
    launch = racefree.analyze(certain_and_possible, ints(1), ints(1), torch.zeros(4), grid=(4,))
    assert {race.first.tensor for race in launch.races} == {"o"}


def test_what_was_not_analysed_is_told_once_and_a_proof_not_at_all() -> None:
    stream = io.StringIO()
    with racefree.trace(racefree.RaceDetector(compile=True, on_launch=LiveReport(stream))):
        for _ in range(3):
            k.scatter_rounded[(2,)](torch.zeros(32), ints(32))
            k.parity[(2,)](ints(2))
    assert stream.getvalue().count("indirect-address") == 1
    assert "parity" not in stream.getvalue()


def test_two_threads_launch_side_by_side() -> None:
    def launches(step: int) -> None:
        for _ in range(3):
            k.write_write[(4,)](ints(99), STEP=step)

    with racefree.trace(racefree.RaceDetector(compile=True, on_launch=lambda launch: None)):
        threads = [threading.Thread(target=launches, args=(step,)) for step in (8, 16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = sorted((launch.verdict.status.value, len(launch.races)) for launch in racefree.launches)
    assert found == [("ok", 0)] * 3 + [("races", 1)] * 3


def test_verdicts_races_and_evidence_are_kept(tmp_path: Path) -> None:
    racefree.analyze(k.parity, ints(2), grid=(2,))
    racefree.analyze(k.parity, ints(2), grid=(3,))
    racefree.analyze(k.scatter_rounded, torch.zeros(32), ints(32), grid=(2,))
    racefree.save(tmp_path / "launches.json")
    kept = racefree.load(tmp_path / "launches.json")
    assert kept == racefree.launches
    assert kept[0].verdict.configs[0].grid_fragile
    assert kept[1].races


@pytest.mark.parametrize(
    ("spaces", "status"), [(31, Status.OK), (6, Status.OK), (2, Status.RACES), (4, Status.RACES), (1, Status.RACES)]
)
def test_only_a_barrier_for_reads_and_writes_of_global_memory_orders(spaces: int, status: Status) -> None:
    """Bit 1 of the address space is reads of global memory, bit 2 writes, bit 0 shared memory."""
    arguments = {"x": ints(256), "o": ints(256), "FENCE": 1, "ONLY": 0}
    config = capture_one(k.reversed_tile, (), arguments, (2,), target="cuda:80").configs[0]
    assert config.module is not None
    assert config.facts is not None
    assert "addrSpace = 31" in config.module.text
    rewritten = replace(config.module, text=config.module.text.replace("addrSpace = 31", f"addrSpace = {spaces}"))
    assert decide(read_program(rewritten), config.facts, Options()).status is status


def test_two_programs_share_the_grid_and_nothing_of_their_own() -> None:
    one, other = copier(1), copier(2)
    for name, shared in ((program_id(0), False), (lane(0, 16), False), (grid_size(0), True)):
        assert (one.sum(variable(name)) == other.sum(variable(name))) is shared


def test_a_lane_is_one_of_its_dimension_and_extent() -> None:
    assert lane(0, 16) == lane(0, 16)
    assert len({lane(0, 16), lane(1, 16), lane(0, 32)}) == 3
