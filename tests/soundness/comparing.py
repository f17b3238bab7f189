"""Compares the verdict of the rungs on a generated launch with enumeration, and says how they differ."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np
from judging import Judged, judge, other_grids, prepared
from kernels import Kernel
from lowering import CompileFailed

from racefree.errors import Refused
from racefree.graph.launch import LaunchFacts, Scalar, Tensor
from racefree.graph.program import Program, accesses
from racefree.proof.rungs import Options, WantedScope, decide
from racefree.proof.symbolic_rungs import strengthen
from racefree.verdict import ProofScope, RaceConfigVerdict, Status


@dataclass(frozen=True, slots=True)
class Comparison:
    """`wrong` is empty when nothing disagrees; `kind` sorts the outcome for counting."""

    kind: str
    wrong: str = ""
    refusal: str = ""
    detail: str = ""


def compare(
    kernel: Kernel, module: ModuleType, *, scope: WantedScope, strict_lanes: bool = False, grids: int = 6
) -> list[Comparison]:
    """The launch and a variant of it, each with every other grid and scalar argument the verdict claims to cover."""
    try:
        program, facts, _alive = prepared(kernel, module)
    except CompileFailed:
        return [Comparison("does not compile")]
    except Refused as refused:
        return [Comparison("not read", refusal=refused.refusal.kind)]
    launches = (facts, _variant(program, facts, random.Random(kernel.seed)))
    options = Options(lanes="strict" if strict_lanes else "default", scope=scope)
    return [compare_launch(program, each, options, grids=grids) for each in launches]


def _variant(program: Program, facts: LaunchFacts, rng: random.Random) -> LaunchFacts:
    """Another launch of the same compiled kernel: grid, scalars and table differ."""
    arguments = dict(facts.arguments)
    for name, values in (("n", (0, 16, 48, 5, 33)), ("t", (0, 2, 3)), ("m", (-2, -16, -48))):
        old = arguments[name]
        value = rng.choice(values)
        if (
            isinstance(old, Scalar)
            and old.value != 1
            and isinstance(old.value, int)
            and (old.value % 16 or not value % 16)
        ):
            arguments[name] = Scalar(value)
    table = arguments["tab"]
    if isinstance(table, Tensor) and rng.random() < 0.5:
        contents = np.array([rng.randrange(64) for _ in range(64)], dtype=np.int32).view(np.uint8)
        arguments["tab"] = replace(table, storage=replace(table.storage, contents=contents))
    return replace(facts, grid=rng.choice(other_grids(program, facts.grid) or [facts.grid]), arguments=arguments)


def compare_launch(program: Program, facts: LaunchFacts, options: Options, *, grids: int) -> Comparison:
    """One launch, and everything else its verdict claims."""
    strict_lanes = options.lanes == "strict"
    try:
        verdict = decide(program, facts, options)
    except Refused as refused:
        verdict = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refused.refusal)
    truth = judge(program, facts, strict_lanes=strict_lanes)
    first = _launch(program, verdict, truth)
    if first.wrong or verdict.status is not Status.OK:
        return first
    return _elsewhere(program, facts, verdict, grids, strict_lanes) or first


def compare_strengthened(
    kernel: Kernel, module: ModuleType, *, strict_lanes: bool = False, grids: int = 6
) -> Comparison:
    """What the symbolic rungs claim on their own about the launch, other grids and other scalars."""
    try:
        program, facts, _alive = prepared(kernel, module)
        result = strengthen(program, facts, decided=True, strict_lanes=strict_lanes)
    except CompileFailed:
        return Comparison("does not compile")
    except Refused as refused:
        return Comparison("refused", refusal=refused.refusal.kind, detail=refused.refusal.reason)
    if result.status != "proved":
        kind = "none" if result.refusal is None else result.refusal.kind
        return Comparison("passed", refusal=kind)
    verdict = RaceConfigVerdict({}, Status.OK, result.rung, result.scope, result.qualifiers)
    first = _launch(program, verdict, judge(program, facts, strict_lanes=strict_lanes))
    return first if first.wrong else _elsewhere(program, facts, verdict, grids, strict_lanes) or first


def _launch(program: Program, verdict: RaceConfigVerdict, truth: Judged) -> Comparison:
    said = verdict.status.value
    if verdict.status in (Status.UNSUPPORTED, Status.VACUOUS):
        refusal = verdict.refusal
        kind = "none" if refusal is None else refusal.kind
        detail = "" if refusal is None else refusal.reason
        if kind == "internal-error":
            return Comparison("WRONG", f"contradicts itself: {detail}", detail=str(truth.races[:2]))
        return Comparison(f"{said}, truth {truth.status}", refusal=kind, detail=detail)
    if truth.status in ("unknown", "doubtful"):
        return Comparison(f"{said}, truth {truth.status}", detail=truth.reason)
    if said != truth.status:
        return Comparison("WRONG", f"said {said}, enumeration says {truth.status}", detail=str(truth.races[:2]))
    scope = "" if verdict.scope is None else verdict.scope.value
    if verdict.status is Status.RACES and not truth.leaves_tensor:
        stray = _stray_pairs(program, verdict, truth)
        if stray:
            return Comparison("WRONG", f"reports a pair that does not race: {stray}", detail=str(truth.races))
    return Comparison(f"{said} {scope}".strip())


def _stray_pairs(program: Program, verdict: RaceConfigVerdict, truth: Judged) -> list[tuple[int, int, str]]:
    lines = {a.index: a.site.line for a in accesses(program)}
    known = set()
    for race in truth.races:
        pair = sorted((lines[race.first.access], lines[race.second.access]))
        known.add((*pair, _type(race.race_type), race.inside_one_instance))
    stray = []
    for record in verdict.races:
        first, second = sorted((record.first.source[1], record.second.source[1]))
        inside = record.programs[0] == record.programs[1]
        if (first, second, _type(record.race_type), inside) not in known:
            stray.append((first, second, record.race_type))
    return stray


def _type(race_type: str) -> str:
    return "WAW" if race_type == "WAW" else "RW"


def _elsewhere(
    program: Program, facts: LaunchFacts, verdict: RaceConfigVerdict, grids: int, strict_lanes: bool
) -> Comparison | None:
    """What an any-grid (and any-parameters) proof claims about other launches."""
    if verdict.scope is ProofScope.THIS_PARAMS_THIS_GRID:
        return None
    launches = [replace(facts, grid=grid) for grid in other_grids(program, facts.grid, grids)]
    if verdict.scope is ProofScope.ANY_PARAMS_ANY_GRID:
        both = (facts, *launches[-1:])
        launches += [_with_scalars(launch, k) for k in (0, 3, 16, 48) for launch in both]
    for launch in launches:
        truth = judge(program, launch, strict_lanes=strict_lanes)
        if truth.status == "races":
            scalars = {n: a.value for n, a in launch.arguments.items() if isinstance(a, Scalar)}
            where = f"grid {launch.grid}, scalars {scalars}"
            assumed = any("overflow" in q for q in verdict.qualifiers)
            text = f"proved for {verdict.scope}, races at {where}"
            kind = "CHECK overflow" if assumed else "WRONG"
            return Comparison(kind, text, detail=f"{verdict.qualifiers} {truth.races[:1]}")
    return None


def _with_scalars(facts: LaunchFacts, value: int) -> LaunchFacts:
    """Every integer argument set to `value`, kept a multiple of 16 where the compiler was told it is one."""
    arguments = {
        name: Scalar(value if not isinstance(a.value, int) or a.value % 16 else value // 16 * 16)
        if isinstance(a, Scalar)
        else a
        for name, a in facts.arguments.items()
    }
    return replace(facts, arguments=arguments)
