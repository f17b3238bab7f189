"""Proofs beyond one launch: which symbolic rung to try, within which budget.

`strengthen` returns a `RungResult` (see `racefree.proof.outcome`): "proved" with the scope any-params-any-grid or
this-params-any-grid and its qualifiers, or "passed" with the reason and perhaps races of some grids in `grid_fragile`.
It never says that this launch races: what it saw of the launch's own grid is for the caller to confirm. A proof it returns
covers this launch too, whether or not another rung decided it. It orders nothing by atomics: for kernels that synchronise it
proves only what holds without.
"""

from __future__ import annotations

from racefree.errors import Refusal, Refused
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program
from racefree.proof.outcome import RungResult

DECIDED_SECONDS = 2.0
UNDECIDED_SECONDS = 30.0
STEPS_PER_SECOND = 700_000
"""Z3's resource count in a second of linear arithmetic, on a slow machine."""

SAFETY_NET_SECONDS = 60.0
"""How much longer it may take on the clock, since other processes may want the machine as well."""


def strengthen(
    program: Program, facts: LaunchFacts, *, decided: bool, strict_lanes: bool = False, scale: float = 1.0
) -> RungResult:
    """The strongest proof for more than this launch. `decided`: another rung has proved this launch, so try for less long.

    `scale` multiplies the budget. Raises KeyboardInterrupt when stopped from the keyboard.
    """
    from racefree.proof.affine import PROVER
    from racefree.proof.smt import rung
    from racefree.proof.smt.asking import Asker
    from racefree.proof.smt.budget import Budget

    seconds = scale * (DECIDED_SECONDS if decided else UNDECIDED_SECONDS)
    steps = int(seconds * STEPS_PER_SECOND)
    try:
        asker = Asker(Budget(steps, steps // 4, seconds + SAFETY_NET_SECONDS), PROVER)
        return rung.strengthen(program, facts, asker, strict_lanes=strict_lanes, decided=decided)
    except Refused as refused:
        return RungResult(rung.RUNG, "passed", refusal=refused.refusal)
    except RecursionError:
        return RungResult(rung.RUNG, "passed", refusal=Refusal("too-large", "the kernel's arithmetic nests too deeply"))
