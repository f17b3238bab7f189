"""Compares the verdict of the rungs on a generated launch with enumeration, and says how they differ."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

import numpy as np
from judging import Judged, judge, other_grids, prepared, reads_grid
from kernels import Kernel
from lowering import CompileFailed

from racefree.errors import Refused
from racefree.graph.launch import LaunchFacts, Scalar, Storage, Tensor
from racefree.graph.program import Program, accesses
from racefree.proof.rungs import Lanes, Options, WantedScope, decide
from racefree.proof.symbolic_rungs import strengthen
from racefree.verdict import READS_CONTENTS, ProofScope, RaceConfigVerdict, Status

Judge = Callable[[Program, LaunchFacts], Judged]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was said (a status, with the scope of a proof) and what is true. `wrong` is empty when nothing disagrees.

    `assumed`: what is wrong happens only where a qualifier of the proof, read generously, excludes it.
    """

    said: str
    truth: str = ""
    wrong: str = ""
    refusal: str = ""
    detail: str = ""
    assumed: bool = False

    @property
    def kind(self) -> str:
        """Sorts the outcome for counting."""
        if self.wrong:
            return "CHECK overflow" if self.assumed else "WRONG"
        settled = self.truth in ("", self.said.split(" ")[0])
        return self.said if settled else f"{self.said}, truth {self.truth}"


def compare(
    kernel: Kernel, module: ModuleType, *, scope: WantedScope, strict_lanes: bool = False, grids: int = 6
) -> list[Comparison]:
    """The launch and a variant of it; one of them with every other grid and scalar argument the verdict claims to cover."""
    try:
        program, facts, _alive = prepared(kernel, module)
    except CompileFailed:
        return [Comparison("does not compile")]
    except Refused as refused:
        return [Comparison("not read", refusal=refused.refusal.kind)]
    launches = [facts, _variant(program, facts, random.Random(kernel.seed))]
    scopes: list[WantedScope] = ["launch", "launch"]
    scopes[kernel.seed % 2] = scope
    lanes: Lanes = "strict" if strict_lanes else "default"
    truth = partial(judge, strict_lanes=strict_lanes)
    return [
        compare_launch(program, each, Options(lanes=lanes, scope=wanted), truth, grids=grids)
        for each, wanted in zip(launches, scopes, strict=True)
    ]


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


def compare_launch(
    program: Program, facts: LaunchFacts, options: Options, truth_of: Judge, *, grids: int
) -> Comparison:
    """One launch, and everything else its verdict claims."""
    try:
        verdict = decide(program, facts, options)
    except Refused as refused:
        verdict = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refused.refusal)
    first = _launch(program, verdict, truth_of(program, facts))
    if first.wrong or verdict.status is not Status.OK:
        return first
    return _elsewhere(program, facts, verdict, truth_of, grids) or first


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
    truth_of = partial(judge, strict_lanes=strict_lanes)
    first = _launch(program, verdict, truth_of(program, facts))
    return first if first.wrong else _elsewhere(program, facts, verdict, truth_of, grids) or first


def _launch(program: Program, verdict: RaceConfigVerdict, truth: Judged) -> Comparison:
    scope = "" if verdict.scope is None else verdict.scope.value
    said = f"{verdict.status.value} {scope}".strip()
    if verdict.status in (Status.UNSUPPORTED, Status.VACUOUS):
        refusal = verdict.refusal
        kind = "none" if refusal is None else refusal.kind
        detail = "" if refusal is None else refusal.reason
        wrong = f"contradicts itself: {detail}" if kind == "internal-error" else ""
        return Comparison(said, truth.status, wrong, kind, detail)
    if truth.status in ("unknown", "doubtful"):
        return Comparison(said, truth.status, detail=truth.reason)
    wrong = "" if verdict.status.value == truth.status else f"said {said}, is {truth.status}"
    if not wrong and verdict.status is Status.RACES and truth.all_pairs:
        stray = _stray_pairs(program, verdict, truth)
        wrong = f"reports a pair that does not race: {stray}" if stray else ""
    return Comparison(said, truth.status, wrong, detail=str(truth.races))


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
    program: Program, facts: LaunchFacts, verdict: RaceConfigVerdict, truth_of: Judge, grids: int
) -> Comparison | None:
    """What an any-grid (and any-parameters) proof claims about other launches."""
    if verdict.scope is ProofScope.THIS_PARAMS_THIS_GRID:
        return None
    launches = [replace(facts, grid=grid) for grid in reversed(other_grids(program, facts.grid, grids))]
    if READS_CONTENTS not in verdict.qualifiers:
        launches += [_with_contents(launch, seed) for seed in range(2) for launch in (facts, *launches[:1])]
    if verdict.scope is ProofScope.ANY_PARAMS_ANY_GRID:
        both = (facts, *launches[:1])
        launches += [_with_scalars(launch, k) for k in (0, 3, 16, 48) for launch in both]
    clean: list[LaunchFacts] = []
    for launch in launches:
        if any(_is_part(program, launch, other) for other in clean):
            continue
        truth = truth_of(program, launch)
        if truth.status == "ok":
            clean.append(launch)
        if truth.status == "races":
            scalars = {n: a.value for n, a in launch.arguments.items() if isinstance(a, Scalar)}
            where = f"grid {launch.grid}, scalars {scalars}"
            assumed = any("overflow" in q for q in verdict.qualifiers)
            text = f"proved for {verdict.scope}, races at {where}"
            detail = f"{verdict.qualifiers} {truth.races[:1]}"
            said = f"{verdict.status.value} {verdict.scope.value if verdict.scope else ''}"
            return Comparison(said, truth.status, text, detail=detail, assumed=assumed)
    return None


def _is_part(program: Program, launch: LaunchFacts, other: LaunchFacts) -> bool:
    """The other launch runs the same instances, and more: none of them can tell how many there are, or meets another."""
    if launch.arguments is not other.arguments or reads_grid(program) or any(a.kind.atomic for a in accesses(program)):
        return False
    return all(mine <= theirs for mine, theirs in zip(launch.grid, other.grid, strict=True))


def _with_contents(facts: LaunchFacts, seed: int) -> LaunchFacts:
    """Every integer tensor of known contents holds other small numbers; tensors in one storage keep sharing it."""
    rng = random.Random(seed)
    changed: dict[int, Storage] = {}
    arguments = dict(facts.arguments)
    for name, tensor in facts.arguments.items():
        if isinstance(tensor, Tensor) and tensor.storage.contents is not None:
            storage = tensor.storage
            if storage.address not in changed:
                most = 2 if tensor.dtype == "bool" else 64
                numbers = [rng.randrange(most) for _ in range(storage.nbytes // tensor.element_bytes)]
                raw = b"".join(n.to_bytes(tensor.element_bytes, "little") for n in numbers)
                contents = np.frombuffer(raw.ljust(storage.nbytes, b"\0"), dtype=np.uint8)
                changed[storage.address] = replace(storage, contents=contents)
            arguments[name] = replace(tensor, storage=changed[storage.address])
    return replace(facts, arguments=arguments)


def _with_scalars(facts: LaunchFacts, value: int) -> LaunchFacts:
    """Every integer argument set to `value`, kept a multiple of 16 where the compiler was told it is one."""
    arguments = {
        name: Scalar(value if not isinstance(a.value, int) or a.value % 16 else value // 16 * 16)
        if isinstance(a, Scalar)
        else a
        for name, a in facts.arguments.items()
    }
    return replace(facts, arguments=arguments)
