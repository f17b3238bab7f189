"""A proved launch whose outcome is certain leaves it in memory for the next one; any other leaves its tensors unknown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import computing_kernels as kernels
import numpy as np
import pytest
import torch
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, _get_np_dtype

from racefree.access import Kind
from racefree.analysis import Analyst
from racefree.config import Settings
from racefree.eager.definedness import Definedness, Undefined
from racefree.eager.memory import Memory
from racefree.errors import InputError
from racefree.graph import leftout
from racefree.launch import Launch
from racefree.session import RaceDetector, deciding

PLACE = ("kernel.py", 7, "kernel")


def taken(work: Callable[[], None], *, interpret: bool = True, **more: Any) -> list[Launch]:
    launches: list[Launch] = []
    with deciding(Analyst(Settings(interpret=interpret, scope="launch", jobs=1, **more)), launches.append):
        work()
    return launches


def statuses(launches: list[Launch]) -> list[str]:
    return [launch.verdict.status.value for launch in launches]


def integers(count: int, *, make: Any = torch.zeros) -> Any:
    return make(count, dtype=torch.int32, device="cuda")


def refusal(launch: Launch) -> str:
    (config,) = launch.verdict.configs
    assert config.refusal is not None
    return config.refusal.reason


@pytest.mark.parametrize(("step", "expected"), [(1, "ok"), (-1, "ok"), (2, "ok"), (0, "races")])
def test_a_table_that_an_earlier_launch_makes(step: int, expected: str) -> None:
    def work() -> None:
        index = integers(64, make=torch.empty)
        kernels.number[(4,)](index, 64, step, BLOCK=16)
        kernels.scatter[(4,)](integers(256), index, BLOCK=16)
        assert index.tolist() == [64 + step * i for i in range(64)]

    assert statuses(taken(work)) == ["ok", expected]


def test_without_it_nothing_runs() -> None:
    def work() -> None:
        index = integers(64)
        kernels.number[(4,)](index, 0, 1, BLOCK=16)
        kernels.scatter[(4,)](integers(64), index, BLOCK=16)
        assert not index.any()

    launches = taken(work, interpret=False)
    assert statuses(launches) == ["ok", "unsupported"]
    assert refusal(launches[1]).endswith("an earlier launch of number, which did not run, writes it")


def test_what_torch_makes_of_it_is_known_too() -> None:
    """Count, sum up, scatter to where each bin starts: the first steps of a counting sort."""

    def work() -> None:
        x, counts = torch.arange(64, device="cuda") * 7 % 16, integers(16)
        kernels.count[(4,)](x, counts, BINS=16, BLOCK=16)
        assert counts.tolist() == [4] * 16
        starts = torch.cumsum(counts, 0).to(torch.int32)
        kernels.scatter[(1,)](integers(65), starts, BLOCK=16)

    assert statuses(taken(work)) == ["ok", "ok"]


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        (
            lambda x: kernels.draw[(4,)](x[:1], x[16:]),
            "what its atomic add returns depends on the order of the instances",
        ),
        (lambda x: kernels.exchange[(4,)](x), "what its atomic exch leaves depends on the order of the instances"),
        (lambda x: kernels.add_and_most[(4,)](x), "it has atomics of several operations"),
        (lambda x: kernels.same_cell[(4,)](x), "it is not proved race-free"),
    ],
)
def test_a_launch_whose_outcome_is_not_certain_does_not_run(launch: Callable[[Any], None], why: str) -> None:
    def work() -> None:
        x = integers(64)
        launch(x)
        assert not x.any()
        kernels.scatter[(1,)](integers(64), x, BLOCK=16)

    first, second = taken(work)
    assert second.verdict.status.value == "unsupported"
    assert f"which did not run ({why}), writes it" in refusal(second)
    assert bool(first.verdict.notes) == (first.verdict.status.value == "ok")


def test_sums_of_floats_depend_on_the_order() -> None:
    def work() -> None:
        total = torch.zeros(1, device="cuda")
        kernels.float_sum[(4,)](torch.ones(4, device="cuda"), total)
        assert not total.any()

    (launch,) = taken(work)
    assert launch.verdict.notes == (
        "not run in Triton's interpreter: what its atomic fadd leaves depends on the order of the instances",
    )


@pytest.mark.parametrize(("size", "expected"), [(64, "ok"), (80, "unsupported")])
def test_memory_nobody_filled_is_known_once_all_of_it_was_computed(size: int, expected: str) -> None:
    def work() -> None:
        index = integers(size, make=torch.empty)
        kernels.number[(4,)](index, 0, 1, BLOCK=16)
        kernels.scatter[(4,)](integers(64), index, BLOCK=16)

    launches = taken(work)
    assert statuses(launches) == ["ok", expected]
    if expected == "unsupported":
        assert "uninitialised memory" in refusal(launches[1])


@pytest.mark.parametrize(("n", "note"), [(64, ("reads memory in line",)), (0, ())])
def test_a_launch_that_reads_unknown_memory_does_not_run(n: int, note: tuple[str, ...]) -> None:
    def work() -> None:
        x = torch.empty(64, device="cuda")
        kernels.double_in_place[(4,)](x, n, BLOCK=16)

    (launch,) = taken(work)
    assert launch.verdict.status.value == "ok"
    assert len(launch.verdict.notes) == len(note)
    assert all(part in told for part, told in zip(note, launch.verdict.notes, strict=True))


def test_a_launch_runs_from_what_the_one_before_left() -> None:
    def work() -> None:
        x = integers(64) + 1
        for _ in range(5):
            kernels.double_in_place[(4,)](x, 40, BLOCK=16)
        assert x.tolist() == [32] * 40 + [1] * 24

    assert statuses(taken(work)) == ["ok"] * 5


def test_a_copy_on_the_host_stays_as_it_was() -> None:
    def work() -> None:
        before = torch.ones(64, dtype=torch.int32)
        x = before.cuda()
        back = x.cpu()
        kernels.double_in_place[(4,)](x, 64, BLOCK=16)
        assert (before.sum().item(), back.sum().item(), x.sum().item()) == (64, 64, 128)

    taken(work)


def test_memory_of_others_is_left_alone() -> None:
    array = np.ones(64, dtype=np.int32)
    array.setflags(write=False)
    with pytest.warns(UserWarning, match="not writable"):
        x = torch.from_numpy(array)
    (launch,) = taken(lambda: kernels.double_in_place[(4,)](x, 64, BLOCK=16))
    assert launch.verdict.notes == ("not run in Triton's interpreter: it may write memory that is not torch's own",)
    assert array.sum() == 64


def test_a_launch_that_takes_too_long_is_given_up() -> None:
    def work() -> None:
        x = integers(1000)
        kernels.slow[(1000,)](x, ROUNDS=2000)
        assert not x.any()

    (launch,) = taken(work, budget=0.01)
    assert launch.verdict.status.value == "ok"
    assert "would take" in launch.verdict.notes[0] or "did not end within" in launch.verdict.notes[0]


def test_definedness_counts_bytes() -> None:
    """Against a set of defined bytes, with mixed element sizes, and addresses beside what is unknown and outside of memory."""
    random = np.random.default_rng(4)
    for _ in range(200):
        memory = Memory([(80, 60), (190, 40)])
        inside = {*range(80, 140), *range(190, 230)}
        watched, defined = Definedness(memory, [(100, 12), (200, 5)]), inside - {*range(100, 112), *range(200, 205)}
        for _ in range(12):
            size = int(random.choice([1, 2, 4, 8]))
            addresses = random.integers(90, 210, size=int(random.integers(1, 4))).astype(np.int64)
            kind = [Kind.LOAD, Kind.STORE, Kind.RMW][int(random.integers(3))]
            touched = {int(a) + i for a in addresses for i in range(size)}
            if not touched <= (inside if kind is Kind.STORE else defined):
                with pytest.raises(Undefined, match="in line 7"):
                    watched.access(0, kind, PLACE, size, addresses, addresses)
                continue
            watched.access(0, kind, PLACE, size, addresses, addresses)
            defined |= touched if kind.writes else set()
        assert watched.known == {s for s, n in ((100, 12), (200, 5)) if set(range(s, s + n)) <= defined}


CERTAIN = (
    "stored under the mask",
    "chosen by the mask",
    "a narrower mask",
    "said what they are",
    "a place under the mask",
    "chosen and summed up",
    "in rounds, under the mask of each",
    "gathered under the mask",
)
UNCERTAIN = (
    "stored",
    "stored under another mask",
    "chosen where the mask fails",
    "chosen by another mask",
    "a mask of its own",
    "a place",
    "summed up",
    "moved",
    "summed up from the end, under the mask",
    "in rounds, under the mask of the next",
    "in rounds, under a mask that turns round",
    "in rounds of a loop with a condition, under a mask that turns round",
    "a branch",
)


def left_by_a_part(how: str, filling: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], tuple[str, ...]]:
    """What `partly_loaded` leaves when the lanes left out of a load hold something, and its notes."""
    real = InterpreterBuilder.create_masked_load

    def filled(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any) -> Any:
        if other is None:
            kind = _get_np_dtype(ptrs.get_element_ty())
            other = TensorHandle(np.full_like(ptrs.data, filling, dtype=kind), ptrs.get_element_ty())
        return real(self, ptrs, mask, other, *rest)

    monkeypatch.setattr(InterpreterBuilder, "create_masked_load", filled)
    x, out = torch.arange(64, dtype=torch.int32) * 5 % 64, torch.zeros(128, dtype=torch.int32)
    launches = taken(lambda: kernels.partly_loaded[(1,)](x, out, 20, HOW=how, BLOCK=32, num_warps=1), lanes="default")
    return out.tolist(), launches[0].verdict.notes


@pytest.mark.parametrize("how", CERTAIN)
def test_lanes_left_out_of_a_load_may_hold_anything(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = {str(left_by_a_part(how, filling, monkeypatch)) for filling in (0, 3, -70, 1 << 20)}
    (outcome,) = outcomes
    assert outcome.endswith("())")
    assert outcome != str(([0] * 128, ()))


@pytest.mark.parametrize("how", UNCERTAIN)
def test_a_kernel_that_looks_at_lanes_left_out_does_not_run(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And if it did, what it leaves would depend on what they hold."""
    left, notes = left_by_a_part(how, 3, monkeypatch)
    assert notes in ((), ("not run in Triton's interpreter: it uses lanes that the mask of a load leaves out",))
    assert not any(left)
    monkeypatch.setattr(leftout, "looks_at_left_out_lanes", lambda program: False)
    if notes:
        assert len({str(left_by_a_part(how, filling, monkeypatch)) for filling in (0, 3, -70, 1 << 20)}) > 1


@pytest.mark.parametrize(("by", "runs"), [(0, True), (-1, False), (49, False)])
def test_a_launch_that_leaves_its_tensors_does_not_run(by: int, runs: bool) -> None:
    x, out = torch.arange(64, dtype=torch.int32), torch.zeros(16, dtype=torch.int32)
    (launch,) = taken(lambda: kernels.shifted_by[(1,)](x, out, by, BLOCK=16, num_warps=1))
    assert bool(out.any()) is runs
    if launch.verdict.status.value == "ok":
        assert any("leaves the memory of its tensors" in note for note in launch.verdict.notes) is not runs


@pytest.mark.parametrize(("least", "runs"), [(1, True), (0, False)])
def test_a_division_by_zero_is_no_outcome(least: int, runs: bool) -> None:
    x, out = torch.arange(16, dtype=torch.int32) + least, torch.zeros(16, dtype=torch.int32)
    (launch,) = taken(lambda: kernels.quotient[(1,)](x, out, BLOCK=16, num_warps=1))
    assert bool(out.any()) is runs
    assert any("divide by zero" in note for note in launch.verdict.notes) is not runs


def test_configs_may_leave_different_things() -> None:
    out = torch.zeros(4, dtype=torch.int32)
    (launch,) = taken(lambda: kernels.tuned[(4,)](out))
    assert launch.verdict.notes == (
        "not run in Triton's interpreter: it is tuned, and its configs need not leave the same",
    )
    assert not out.any()


def test_a_detector_that_runs_nothing_does_not_take_it() -> None:
    with pytest.raises(InputError, match="leave interpret out"):
        RaceDetector(compile=True, interpret=True)


SCRIPT = """
index = torch.empty(64, dtype=torch.int32, device="cuda")
number[(4,)](index, 0, 1, BLOCK=16)
scatter[(4,)](torch.zeros(64, device="cuda"), index, BLOCK=16)
"""


@pytest.mark.parametrize(("options", "code"), [([], 3), (["--interpret"], 0)])
def test_the_command_and_the_plugin_take_it(tmp_path: Path, options: list[str], code: int) -> None:
    source = "import torch\n" + Path(kernels.__file__).read_text()
    script, test = tmp_path / "script.py", tmp_path / "test_it.py"
    script.write_text(source + SCRIPT)
    test.write_text(
        source
        + "\n\ndef test_it(racefree):\n"
        + "".join(f"    {line}\n" for line in SCRIPT.split("\n") if line)
        + f"    assert [x.verdict.status.value for x in racefree.launches] == {['ok', 'ok' if options else 'unsupported']}\n"
    )
    check = [sys.executable, "-m", "racefree", "check", "--scope", "launch", *options, str(script)]
    assert subprocess.run(check, capture_output=True).returncode == code
    given = [option.replace("--", "--racefree-") for option in options]
    run = [sys.executable, "-m", "pytest", "-q", "--racefree", *given, "-p", "no:cacheprovider", str(test)]
    told = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path)
    assert told.returncode == 0, told.stdout
