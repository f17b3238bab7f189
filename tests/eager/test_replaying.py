"""Verdicts checked by runs in Triton's interpreter: true ones agree, falsified ones do not, what cannot be run is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import eager_kernels as kernels
import pytest
import torch
from corpus_files import FOLDER, load, parse

import racefree
from racefree.analysis import Analyst, Decided
from racefree.config import Settings
from racefree.launch import Launch
from racefree.replaying import Replayer
from racefree.session import deciding
from racefree.verdict import (
    CompiledRaceRecord,
    ProofScope,
    RaceConfigVerdict,
    Replay,
    ReplayOutcome,
    Status,
)

CORPUS = (
    "add_into_neighbour",
    "add_tail_masked",
    "atomics_of_two_widths",
    "bits_dropped",
    "counter_atomic_in_block_scope",
    "flag_publish",
    "flag_publish_relaxed",
    "lanes_meet",
    "last_program_sums",
    "last_program_sums_relaxed",
    "lock",
    "lengths_from_table",
    "queue",
    "scatter_duplicate",
    "scatter_permutation",
    "two_views_apart",
    "two_views_one_byte",
    "update_in_place",
    "while_halving",
)
Falsify = Callable[[RaceConfigVerdict], RaceConfigVerdict]


class Falsified(Analyst):
    """Changes every verdict before it is checked."""

    __slots__ = ("falsify",)

    def decide(self, captured: Any) -> Decided:
        decided = super().decide(captured)
        verdict = decided.launch.verdict
        changed = tuple(self.falsify(config) for config in verdict.configs)
        status = changed[0].status
        return replace(
            decided, launch=replace(decided.launch, verdict=replace(verdict, configs=changed, status=status))
        )


def replayed(
    kernel: Any,
    grid: Any,
    *args: Any,
    falsify: Falsify | None = None,
    most: int = 64,
    seconds: float = 60,
    **kwargs: Any,
) -> Launch:
    analyst = Falsified(Settings(scope="launch"))
    analyst.falsify = falsify or (lambda config: config)
    found: list[Launch] = []
    with deciding(analyst, found.append, replayer=Replayer(most, seconds)):
        kernel[grid](*args, **kwargs)
    return found[-1]


def outcome(launch: Launch) -> Replay:
    (config,) = launch.verdict.configs
    assert config.replay is not None
    return config.replay


def zeros(count: int = 64) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.int32)


@pytest.mark.parametrize("name", CORPUS)
def test_runs_agree_with_the_corpus(name: str) -> None:
    entry, module = parse(FOLDER / f"{name}.py"), load(FOLDER / f"{name}.py")
    arguments = module.arguments()
    before = {n: a.clone() for n, a in arguments.items() if isinstance(a, torch.Tensor)}
    launch = replayed(module.kernel, entry.grid, num_warps=entry.num_warps, **arguments)
    assert launch.verdict.status.value == entry.expect.status
    assert outcome(launch).outcome is ReplayOutcome.AGREES, outcome(launch).reason
    assert all(torch.equal(arguments[n], kept) for n, kept in before.items())


def claims_ok(config: RaceConfigVerdict) -> RaceConfigVerdict:
    scope = ProofScope.THIS_PARAMS_THIS_GRID
    return replace(config, status=Status.OK, rung="geometry", scope=scope, races=())


@pytest.mark.parametrize(
    "name",
    [
        "add_into_neighbour",
        "atomics_of_two_widths",
        "flag_publish_relaxed",
        "queue_plain_counter",
        "two_views_one_byte",
    ],
)
def test_a_racy_launch_called_proved_is_found_out(name: str) -> None:
    entry, module = parse(FOLDER / f"{name}.py"), load(FOLDER / f"{name}.py")
    launch = replayed(module.kernel, entry.grid, falsify=claims_ok, num_warps=entry.num_warps, **module.arguments())
    (config,) = launch.verdict.configs
    assert outcome(launch).outcome is ReplayOutcome.DISAGREES
    assert launch.verdict.status is Status.UNSUPPORTED
    assert config.refusal is not None
    assert config.refusal.kind == "internal-error"
    assert "proved race-free by geometry for this-params-this-grid" in config.refusal.reason
    assert f"{name}.py:" in config.refusal.reason
    assert "meet on the byte" in config.refusal.reason


def moved(change: Callable[[CompiledRaceRecord], CompiledRaceRecord]) -> Falsify:
    return lambda config: replace(config, races=tuple(map(change, config.races)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: replace(r, programs=(r.programs[0], (2, 0, 0))), "program (2, 0, 0) makes no such store"),
        (lambda r: replace(r, programs=(r.programs[0], (3, 0, 0))), "program (3, 0, 0) is none of the grid (3, 1, 1)"),
        (lambda r: replace(r, first=replace(r.first, address_bytes=r.first.address_bytes + 4)), "share no byte"),
        (lambda r: replace(r, second=replace(r.second, write=False)), "makes no such store"),
        (lambda r: replace(r, second=replace(r.second, element_bytes=8)), "makes no such store"),
    ],
    ids=["another program", "outside the grid", "another byte", "a load", "another width"],
)
def test_a_race_that_is_not_there_is_found_out(
    change: Callable[[CompiledRaceRecord], CompiledRaceRecord], said: str
) -> None:
    out = zeros()
    assert outcome(replayed(kernels.fill, (3,), out, STEP=8, BLOCK=16)).outcome is ReplayOutcome.AGREES
    launch = replayed(kernels.fill, (3,), out, STEP=8, BLOCK=16, falsify=moved(change))
    assert outcome(launch).outcome is ReplayOutcome.DISAGREES
    assert said in outcome(launch).reason
    assert "a race of the store at" in outcome(launch).reason
    assert launch.races == ()


def test_device_functions_and_reductions_are_run() -> None:
    launch = replayed(kernels.sums, (4,), torch.arange(64, dtype=torch.int32), zeros(), 64, BLOCK=16)
    assert outcome(launch) == Replay(ReplayOutcome.AGREES, 4)


def test_loads_that_are_not_compiled_contradict_nothing() -> None:
    launch = replayed(kernels.unused_load, (4,), zeros(), zeros(96), BLOCK=16)
    assert launch.verdict.status is Status.OK
    assert outcome(launch).outcome is ReplayOutcome.AGREES


def test_accesses_outside_every_tensor_do_no_harm() -> None:
    launch = replayed(kernels.reaches_out, (4,), zeros(16), FAR=1 << 40, BLOCK=16)
    assert outcome(launch) == Replay(ReplayOutcome.AGREES, 4)


@pytest.mark.parametrize(
    ("kernel", "arguments", "options", "said"),
    [
        (kernels.assembly, lambda: (zeros(), zeros()), {"BLOCK": 16}, "inline_asm not supported"),
        (kernels.fill, lambda: (zeros(1024),), {"STEP": 16, "BLOCK": 16, "most": 3}, "at most 3 are run"),
        (kernels.fill, lambda: (zeros().to("meta"),), {"STEP": 16, "BLOCK": 16}, "out is a meta tensor"),
    ],
    ids=["inline assembly", "large grid", "meta tensor"],
)
def test_what_cannot_be_run_is_named(kernel: Any, arguments: Any, options: dict[str, Any], said: str) -> None:
    launch = replayed(kernel, (4,), *arguments(), **options)
    assert launch.verdict.status is Status.OK
    assert outcome(launch).outcome is ReplayOutcome.NOT_REPLAYED
    assert said in outcome(launch).reason


def test_a_run_that_does_not_end_is_given_up() -> None:
    launch = replayed(kernels.waits_forever, (2,), zeros(1), zeros(2), falsify=claims_ok, seconds=1.5)
    assert launch.verdict.status is Status.OK
    assert outcome(launch).reason == "it did not end within 1.5 seconds"


def test_configs_are_checked_one_by_one() -> None:
    launch = replayed(kernels.tuned, (4,), zeros(), BLOCK=16)
    found = {c.config["STEP"]: (c.status, c.replay.outcome) for c in launch.verdict.configs if c.replay is not None}
    assert found == {
        16: (Status.OK, ReplayOutcome.AGREES),
        8: (Status.RACES, ReplayOutcome.AGREES),
    }


def test_detector_runs_unless_told_to_compile_only() -> None:
    for detector, expected in (
        (racefree.RaceDetector(on_launch=lambda launch: None), ReplayOutcome.AGREES),
        (racefree.RaceDetector(on_launch=lambda launch: None, compile=True), None),
    ):
        with racefree.trace(detector):
            kernels.fill[(2,)](zeros(), STEP=16, BLOCK=16)
        replay = racefree.launches[-1].verdict.configs[0].replay
        assert (replay and replay.outcome) == expected
    racefree.launches.clear()
    with pytest.raises(racefree.InputError, match="nothing is run"):
        racefree.RaceDetector(compile=True, replay_programs=3)
