"""Which accesses of one program instance are ordered: by barriers, by data dependence, by one thread owning a lane."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from racefree.access import Kind
from racefree.graph.launch import LaunchFacts
from racefree.proof.footprint.depend import EVERY, Dependences
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.possible import Flows
from racefree.proof.footprint.values import I64, Affine, Dense, Number
from racefree.proof.replicas import loads_replicas

Keys = tuple[tuple[int, int], ...]
"""Pairs of axes (of the first footprint, of the second): equal indices along all of them mean ordered."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What orders two executions of a pair of footprints, barriers aside.

    `always` holds the rules that need no assumption, `owned` those that take a lane to be one thread. `replicated` are those
    of `always` that take all replicas of a load to run before the store that depends on one. `perhaps` are dependences that
    are not certain: a pair one of them could order is no proof of a race.
    """

    always: tuple[Keys, ...]
    owned: tuple[Keys, ...]
    perhaps: tuple[Perhaps, ...] = ()
    replicated: tuple[Keys, ...] = ()


@dataclass(frozen=True, slots=True)
class Perhaps:
    """Equal lanes along `lanes` may mean ordered, if the first footprint runs before the second (or after, if `backward`).

    Before means an earlier iteration of the common folded loops, or (unless `backward`) the same one.
    """

    lanes: Keys
    loops: Keys
    backward: bool


def common_loops(f: Footprint, g: Footprint) -> tuple[Keys, bool]:
    """Axes of the folded loops both are in, and whether they stand in the same iteration of all stepped ones in common."""
    pairs: list[tuple[int, int]] = []
    for a, b in zip(f.nest, g.nest, strict=False):
        if a.loop != b.loop:
            break
        if a.axis is None or b.axis is None:
            if a.axis != b.axis or a.step != b.step:
                return tuple(pairs), False
            continue
        pairs.append((a.axis, b.axis))
    return tuple(pairs), True


def rules(f: Footprint, g: Footprint, dependences: Dependences, facts: LaunchFacts, *, strict: bool) -> Rules:
    """The ordering rules for an execution of `f` and a later or equal one of `g` in one program instance."""
    loops, together = common_loops(f, g)
    tile_f, tile_g = len(f.loops), len(g.loops)
    always: list[Keys] = []
    owned: list[Keys] = []
    replicated = loads_replicas(f.access, g.access, threads(facts))
    if together and f is not g and not (strict and replicated):
        for relation in dependences.of.get(g.access.index, {}).get(f.access.index, frozenset()):
            lanes = tuple((tile_f + d, tile_g + e) for d, e in enumerate(relation) if e != EVERY)
            # Through a reduction the value holds what every lane loaded, or one replica of it.
            if EVERY not in relation or (replicated and not strict):
                always.append(loops + lanes)
            elif not strict and _elements(f) >= threads(facts):
                owned.append(loops + lanes)
    if not strict and f.access.shape == g.access.shape and one_thread_per_lane(f, g, facts):
        owned.append(tuple((tile_f + d, tile_g + d) for d in range(len(f.access.shape))))
    return Rules(tuple(always), tuple(owned), replicated=tuple(always) if replicated else ())


def perhaps(
    f: Footprint, g: Footprint, flows: dict[int, Flows], given: Rules, facts: LaunchFacts, *, strict: bool
) -> tuple[Perhaps, ...]:
    """What could order the two besides the rules in `given`, had we looked closer."""
    if strict and loads_replicas(f.access, g.access, threads(facts)):
        return ()
    loops, together = common_loops(f, g)
    tile_f, tile_g = len(f.loops), len(g.loops)
    out: list[Perhaps] = []
    for first, second, backward in ((f, g, False), (g, f, True)):
        for relation, across in sorted(flows.get(second.access.index, {}).get(first.access.index, frozenset())):
            pairs = [(d, e) for d, e in enumerate(relation) if e != EVERY]
            lanes = tuple((tile_f + (e if backward else d), tile_g + (d if backward else e)) for d, e in pairs)
            if not across and together and not backward and loops + lanes in given.always:
                continue
            out.append(Perhaps(lanes, loops, backward))
    return tuple(out)


def _elements(f: Footprint) -> int:
    return prod(f.access.shape)


def threads(facts: LaunchFacts) -> int:
    return facts.num_warps * facts.warp_size * facts.num_ctas


def one_thread_per_lane(f: Footprint, g: Footprint, facts: LaunchFacts) -> bool:
    """Whether the same lane of both accesses is taken to run in one thread.

    Tiles with at least one element per thread give each element to one thread, the same for elements of one size (Triton
    picks layouts by it). What one instruction stores is stored by the same replica each time, scalars by thread 0.
    """
    if f.access.index == g.access.index:
        return True
    if _elements(f) >= threads(facts) and f.access.element_bytes == g.access.element_bytes:
        return True
    return not f.access.shape and Kind.LOAD not in (f.access.kind, g.access.kind)


@dataclass(frozen=True, slots=True, eq=False)
class Epochs:
    """The barriers passed before each execution: per row a start, plus a rate per folded loop axis."""

    start: I64
    rates: tuple[int, ...]


def affine_epochs(count: Number) -> Epochs | None:
    """An epoch that is affine with constant rates; None where it has to be looked up cell by cell."""
    if isinstance(count, Dense) and count.known is None and count.data.size == count.data.shape[0]:
        return Epochs(count.data.reshape(-1), (0,) * (count.data.ndim - 1))
    if not isinstance(count, Affine) or not all(isinstance(c, int) for c in count.coefs):
        return None
    return Epochs(count.base, tuple(c for c in count.coefs if isinstance(c, int)))
