"""Turns a shared byte into the two executions that touch it, with lanes, iterations and source lines."""

from __future__ import annotations

import numpy as np

from racefree.access import Pattern
from racefree.errors import Refused
from racefree.geometry import Witness as Shared
from racefree.geometry import overlap_witness
from racefree.graph.program import Access
from racefree.proof.footprint.between import Meeting
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.shadow import Lattice, Points, extents_of
from racefree.proof.footprint.survey import Launch, alone
from racefree.proof.footprint.values import Affine
from racefree.proof.footprint.within import Clash
from racefree.proof.outcome import Side, Witness

UNORDERED_INSIDE = "no barrier and no data dependence orders them inside the program instance"


def between_race(launch: Launch, a: Access, b: Access, found: Meeting) -> Witness:
    """The executions behind a meeting, by evaluating the two programs again on their own."""
    first = _execution(launch, a, found.first, found.byte)
    second = _execution(launch, b, found.second, found.byte)
    return Witness(first, second, "two program instances of one launch run in any order")


def within_race(launch: Launch, f: Footprint, g: Footprint, program: int, clash: Clash) -> Witness:
    """The two executions of a clash, in the order they come in the program instance."""
    first = _at(launch, f, program, clash.first, clash.row)
    second = _at(launch, g, program, clash.second, clash.row)
    shared = 0
    for a, b in zip(f.nest, g.nest, strict=False):
        if a.loop != b.loop:
            break
        shared += 1
    if second.iterations[:shared] < first.iterations[:shared]:
        first, second = second, first
    return Witness(first, second, UNORDERED_INSIDE)


def pid_of(launch: Launch, program: int) -> tuple[int, int, int]:
    """The program id of a linear program number."""
    x, y, z = (int(p[0]) for p in launch.pids(np.array([program], dtype=np.int64)))
    return x, y, z


def _execution(launch: Launch, access: Access, program: int, byte: int) -> Side:
    chunk = alone(launch, program)
    for footprint, found in zip(chunk.footprints, chunk.must, strict=True):
        if footprint.access.index != access.index:
            continue
        match found:
            case Lattice():
                pattern = found.patterns().pattern(0)
                hit = overlap_witness(pattern, Pattern(byte, 1))
                if isinstance(hit, Shared):
                    indices = tuple(int(low) + k for low, k in zip(found.low[0], hit.a, strict=True))
                    return _at(launch, footprint, program, indices, 0)
            case Points():
                inside = np.flatnonzero((found.address <= byte) & (byte < found.address + found.elem_bytes))
                if len(inside):
                    extents = extents_of(footprint)
                    cell = int(found.cell[inside[0]])
                    indices = tuple(int(i) for i in np.unravel_index(cell, extents)) if extents else ()
                    return _at(launch, footprint, program, indices, 0)
            case None:
                pass
    raise Refused("internal-error", "a shared byte could not be traced back to a lane", access.site)


def _at(launch: Launch, footprint: Footprint, program: int, indices: tuple[int, ...], row: int) -> Side:
    loops = len(footprint.loops)
    iterations = tuple(turn.step if turn.axis is None else indices[turn.axis] for turn in footprint.nest)
    virtual = _address(footprint, indices, row)
    return Side(footprint.access, pid_of(launch, program), indices[loops:], iterations, launch.space.real(virtual))


def _address(footprint: Footprint, indices: tuple[int, ...], row: int) -> int:
    address = footprint.address
    if isinstance(address, Affine):
        total = int(address.base[row if address.base.size > 1 else 0])
        for coef, index in zip(address.coefs, indices, strict=True):
            total += (coef if isinstance(coef, int) else int(coef[row if coef.size > 1 else 0])) * index
        return total
    cell = [row if address.data.shape[0] > 1 else 0]
    cell += [k if n > 1 else 0 for k, n in zip(indices, address.data.shape[1:], strict=True)]
    return int(address.data[tuple(cell)])
