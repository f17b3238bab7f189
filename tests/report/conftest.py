"""A report made by hand, with everything in it that a format has to render, and an empty one."""

from __future__ import annotations

import pytest

from racefree.access import Site
from racefree.errors import Refusal
from racefree.launch import ArgumentSummary, Launch
from racefree.report.build import launch_subjects
from racefree.report.model import Ending, Report, Script
from racefree.verdict import (
    ASSUMES_TERMINATION,
    CompiledRaceRecord,
    ProofScope,
    RaceAccess,
    RaceConfigVerdict,
    RaceVerdict,
    Status,
)

FILE = "/project/kernels.py"
SOURCES = {
    FILE: {
        8: "def shift(x, out, BLOCK: tl.constexpr):",
        10: "    value = tl.load(x + offsets - 1, mask=offsets > 0)",
        11: "\ttl.store(out + offsets, value)",
        20: "def table(x, index):",
        22: "    tl.store(x + tl.load(index), 1)",
        30: "def clean(x):",
        40: "shift[(4,)](x, x, BLOCK=32)",
    }
}


def access(op: str, line: int, element: int, **rest: object) -> RaceAccess:
    fields = {"write": op == "store", "atomic": False, "tensor": "out", "source": (FILE, line, "shift")} | rest
    return RaceAccess(op=op, element=element, **fields)  # type: ignore[arg-type]


def race(
    first: RaceAccess, second: RaceAccess, kind: str = "WAW", programs: tuple[int, int] = (0, 1)
) -> CompiledRaceRecord:
    ids = (programs[0], 0, 0), (programs[1], 0, 0)
    return CompiledRaceRecord(
        kind, first, second, ids, "nothing orders two programs of a launch", {"BLOCK": 32}, hint="give each its own"
    )


def launch(kernel: str, line: int, verdict: RaceVerdict) -> Launch:
    return Launch(
        kernel=kernel,
        site=Site(FILE, line, 0, kernel),
        launch_site=Site(FILE, 40, 0, "main"),
        grid=(4, 1, 1),
        target="cuda:80",
        arguments=(ArgumentSummary("x", "int32[128] strides (1,)"), ArgumentSummary("n", "128")),
        verdict=verdict,
    )


def proved() -> RaceVerdict:
    scope = ProofScope.THIS_PARAMS_ANY_GRID
    config = RaceConfigVerdict({}, Status.OK, "affine", scope, (ASSUMES_TERMINATION,), seconds=0.0125)
    return RaceVerdict(Status.OK, scope, (ASSUMES_TERMINATION,), (config,), (), "triton 3.8 cuda", 0.0125)


def racing() -> RaceVerdict:
    records = (
        race(
            access("store", 11, 64, lane=(32,), column=2, arithmetic="pid*32 + lane + 32 = 0*32 + 32 + 32 = 64"),
            access("store", 11, 64, lane=(0,), column=2, arithmetic="pid*32 + lane + 32 = 1*32 + 0 + 32 = 64"),
        ),
        race(
            access("load", 10, 31, lane=(0,), tensor="x"),
            access("store", 11, 31, lane=(31,), tensor="x"),
            "WAR",
            (1, 0),
        ),
    )
    config = RaceConfigVerdict({"BLOCK": 32}, Status.RACES, "geometry", races=records, seconds=0.002)
    return RaceVerdict(Status.RACES, None, (), (config,), ("one possible race was withheld",), "triton 3.8 cuda", 0.002)


def refused() -> RaceVerdict:
    where = Site(FILE, 22, 13, "table")
    refusal = Refusal(
        "indirect-address", "the address depends on index, whose contents are unknown: float | <dtype>", where
    )
    config = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refusal)
    return RaceVerdict(Status.UNSUPPORTED, None, (), (config,))


@pytest.fixture
def mixed_report() -> Report:
    shifts = racing()
    launches = [launch("shift", 8, shifts), launch("clean", 30, proved()), launch("table", 20, refused())]
    launches.append(launch("shift", 8, shifts))
    script = Script("/project/train.py", Ending.EXITED, "exited with status 3")
    return Report(
        "0.0.0", "/project", launch_subjects(launches), script, ("one forked child was not seen",), SOURCES, 1.5
    )


@pytest.fixture
def empty_report() -> Report:
    return Report("0.0.0", "/project", (), Script("/project/train.py", Ending.FINISHED))
