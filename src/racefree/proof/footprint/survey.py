"""Evaluates a kernel for all program instances of a launch, as many at a time as memory allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from racefree.errors import Refusal, Refused
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Op, Program, accesses, walk
from racefree.proof.footprint.evaluate import Evaluation, Footprint
from racefree.proof.footprint.excluding import excluding
from racefree.proof.footprint.memory import AddressSpace
from racefree.proof.footprint.shadow import Lattice, Points, Shadow, points, shadow
from racefree.proof.footprint.slicing import (
    ANYWHERE,
    Slice,
    computed_from_addresses,
    needed_values,
    pointer_roots,
)
from racefree.proof.footprint.values import I64, Region, TooBig

CELL_LIMIT = 1 << 23
"""Cells of one dense array: 64 MB of int64."""

CHUNK_CELLS = 1 << 21
"""The same for an array of several programs at once: larger ones are slower, for they fall out of the caches."""

MOST_PROGRAMS = 1 << 24

MOST_STEPPED, MOST_FOOTPRINTS = 64, 256
"""Iterations of a loop, and footprints in all, that are better looked at one by one than element by element."""

WORTH = 16
"""So many times fewer elements must be left to list."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel at one launch, with what the analysis keeps asking for."""

    program: Program
    facts: LaunchFacts
    space: AddressSpace
    slice: Slice
    written: frozenset[int]
    """The clusters that stores through a tensor argument may write."""
    places: Mapping[int, frozenset[int]]
    """For each access (by index), the clusters that its pointer may point into, with ANYWHERE where that is not known."""
    loose: frozenset[int]
    """The accesses (by index) whose pointer is made from an integer: they may go anywhere."""
    excluding: frozenset[int]
    """The accesses (by index) that race with nothing, wherever in their storages they go."""
    grid: tuple[int, int, int]
    """The grid with axes the kernel does not read cut to 2: programs that differ only there behave alike."""
    early: frozenset[int] = frozenset()
    """The loads (by index) that are taken to come before every write of the launch to where they read."""

    def pids(self, linear: I64) -> tuple[I64, I64, I64]:
        """Program ids of linear program numbers (x fastest)."""
        x, y, _ = self.grid
        return linear % x, linear // x % y, linear // (x * y)

    @property
    def programs(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(slots=True)
class Facts:
    """What the evaluation used or met, for the qualifiers and notes of the verdict."""

    reads_contents: bool = False
    read_clusters: set[int] = field(default_factory=set)
    assumes_termination: bool = False
    notes: set[str] = field(default_factory=set)
    unplaced: dict[int, Refusal] = field(default_factory=dict)
    """The accesses (by index) with an address that is not known, and why. There is no footprint of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """The footprints of a run of program instances; row r is linear program `programs[r]`."""

    programs: I64
    footprints: list[Footprint]
    may: tuple[Shadow | None, ...]
    must: tuple[Shadow | None, ...]
    """What each footprint may touch, and what it surely does (the same object where that is certain)."""


def prepare(program: Program, facts: LaunchFacts) -> Launch:
    """Find the accesses that can race (their storage is written by some access) and the values that decide them."""
    space = AddressSpace(program, facts)
    roots = pointer_roots(program)
    every = frozenset(range(len(space.clusters)))

    def clusters(pointer: int) -> frozenset[int]:
        found = roots.get(pointer, frozenset({ANYWHERE}))
        if ANYWHERE in found:
            return every | {ANYWHERE}
        return frozenset(space.cluster_of(space.tensors[r].storage) for r in found if r in space.tensors)

    places = {a.index: clusters(a.pointer.index) for a in accesses(program)}
    loose = frozenset(index for index, where in places.items() if ANYWHERE in where)
    writes = [a.index for a in accesses(program) if a.kind.writes]
    reached = frozenset[int]().union(*(places[index] for index in writes))
    relevant = frozenset(index for index, where in places.items() if where & reached)
    slice_ = Slice(relevant, needed_values(program, relevant), roots, computed_from_addresses(program))
    written = frozenset[int]().union(*(places[index] for index in writes if index not in loose))
    apart = excluding(program, space, places, loose)
    return Launch(program, facts, space, slice_, written, places, loose, apart, _shrunk_grid(program, facts, slice_))


def _shrunk_grid(program: Program, facts: LaunchFacts, slice_: Slice) -> tuple[int, int, int]:
    read = {
        s.attributes["axis"]
        for s in walk(program.body)
        if isinstance(s, Op) and s.name == "tt.get_program_id" and s.results[0].index in slice_.values
    }
    x, y, z = (n if axis in read else min(n, 2) for axis, n in enumerate(facts.grid))
    return x, y, z


def alone(launch: Launch, program: int) -> Chunk:
    """The footprints of one program instance, by its linear number."""
    return next(survey(launch, Facts(), program, program + 1))


def survey(launch: Launch, used: Facts, start: int = 0, stop: int | None = None) -> Iterator[Chunk]:
    """The footprints of all programs (or of a range of them), chunk by chunk.

    Raises `Refused` for what this rung cannot evaluate.
    """
    total = launch.programs if stop is None else stop
    if total - start > MOST_PROGRAMS:
        raise Refused("grid-budget", f"{total} program instances are too many to enumerate", launch.program.site)
    size = total - start
    stepped: Mapping[int, int] | None = None
    while start < total:
        programs = np.arange(start, min(start + size, total), dtype=np.int64)
        state = evaluation(launch, programs, stepped)
        try:
            footprints = state.run()
            may = tuple(placed(launch, f, f.where.may, len(programs)) for f in footprints)
            must = tuple(
                m if f.where.exact else placed(launch, f, f.where.must, len(programs))
                for f, m in zip(footprints, may, strict=True)
            )
        except TooBig as big:
            if stepped is None:
                stepped = _worth_stepping(launch, programs)
                continue
            if len(programs) > 1:
                size = max(1, min(len(programs) // 2, _cell_limit(len(programs)) // big.cells_per_row))
                continue
            foldable = {k: n for k, n in state.loop_extents.items() if n > stepped.get(k, 1)}
            if not foldable:
                raise Refused(
                    "memory-budget", "one program instance touches too many cells", launch.program.site
                ) from None
            largest = max(foldable, key=lambda k: foldable[k])
            stepped = {**stepped, largest: foldable[largest]}
            continue
        used.reads_contents |= state.reads_contents
        used.read_clusters |= state.read_clusters
        used.assumes_termination |= state.assumes_termination
        used.notes |= state.notes
        used.unplaced |= state.unplaced
        yield Chunk(programs, footprints, may, must)
        start += len(programs)


def _worth_stepping(launch: Launch, programs: I64) -> Mapping[int, int]:
    """The loops without which masked tiles are lattices, as a few of the programs tell, as long as they have few iterations.

    Where a mask bounds `round * BLOCK + lane`, the lanes of each round are a range, and those of all rounds are not.
    """
    sample = np.unique(programs[[0, len(programs) // 2, -1]])
    whole = evaluation(launch, sample)
    try:
        elements = _listed(launch, whole.run(), sample)
        few = {loop: MOST_STEPPED for loop, extent in whole.loop_extents.items() if extent <= MOST_STEPPED}
        footprints = evaluation(launch, sample, few).run()
        worth = len(footprints) <= MOST_FOOTPRINTS and WORTH * _listed(launch, footprints, sample) <= elements
    except TooBig:
        return {}
    return few if worth else {}


def _listed(launch: Launch, footprints: list[Footprint], programs: I64) -> int:
    """How many elements are listed one by one."""
    parts = (placed(launch, footprint, footprint.where.may, len(programs)) for footprint in footprints)
    return sum(len(part.rows) for part in parts if isinstance(part, Points))


def placed(launch: Launch, footprint: Footprint, region: Region, rows: int) -> Shadow | None:
    """The bytes of a footprint; a lattice stays one only where each row keeps to one cluster."""
    found = shadow(footprint, region, rows, 0, _cell_limit(rows))
    if not isinstance(found, Lattice):
        return found
    starts, ends = found.patterns().spans()
    if (launch.space.home(starts) == launch.space.home(ends - 1)).all():
        return found
    return points(footprint, region, rows, 0, _cell_limit(rows))


def _cell_limit(programs: int) -> int:
    return CELL_LIMIT if programs == 1 else min(CHUNK_CELLS, CELL_LIMIT)


def evaluation(launch: Launch, programs: I64, stepped: Mapping[int, int] | None = None) -> Evaluation:
    """An evaluation of some programs. `stepped` says up to how many iterations a loop is stepped and not folded."""
    return Evaluation(
        launch.program,
        launch.facts,
        launch.space,
        launch.slice,
        launch.pids(programs),
        cell_limit=_cell_limit(len(programs)),
        stepped=stepped or {},
        written=launch.written,
        early=launch.early,
    )
