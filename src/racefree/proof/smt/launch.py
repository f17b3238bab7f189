"""What the solver is told about a launch: parameter terms, the tensors of each access, and where those lie.

Storages that do not overlap are moved far apart, so that running off one never lands in another.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Storage, Tensor
from racefree.graph.program import Float, Int, Parameter, Program, Ptr, accesses
from racefree.proof.replay.machine import argument_pattern
from racefree.proof.replay.memory import launch_memory, pointer_roots
from racefree.proof.symbolic.arithmetic import limits
from racefree.proof.symbolic.terms import FALSE, TRUE, Term, Var, VarKind, number, variable
from racefree.proof.symbolic.variables import base

GAP_BYTES = 1 << 48
Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """How far each storage has been moved, by its address; storages that overlap move together."""

    shifts: dict[int, int]

    def virtual(self, storage: Storage, address: int) -> int:
        return address + self.shifts[storage.address]

    def real(self, virtual: int, storages: tuple[Storage, ...]) -> int:
        """The address in the launch of a virtual address near one of these storages."""
        for storage in storages:
            address = virtual - self.shifts[storage.address]
            if storage.address <= address < storage.address + storage.nbytes:
                return address
        return virtual


def layout_of(facts: LaunchFacts) -> Layout:
    storages = sorted({(s.address, s.address + s.nbytes) for s in map(storage_of, facts.arguments.values()) if s})
    shifts: dict[int, int] = {}
    cluster, end = 0, -1
    for start, stop in storages:
        if start >= end:
            cluster += 1
            offset = cluster * GAP_BYTES - start // 4096 * 4096
        shifts[start] = offset
        end = max(end, stop)
    return Layout(shifts)


def storage_of(argument: Argument | None) -> Storage | None:
    tensor = argument.base if isinstance(argument, Descriptor) else argument
    return tensor.storage if isinstance(tensor, Tensor) else None


def any_parameter(parameter: Parameter) -> Term | None:
    """A parameter as a variable; so is the address of a tensor, which tells what is read from two tensors apart."""
    element = parameter.value.element
    if isinstance(element, Ptr):
        return variable(base(f"{parameter.name}.{parameter.part}"))
    if isinstance(element, Int) and element.bits > 1:
        low, high = limits(element.bits)
        return variable(parameter_variable(parameter.name, parameter.part, low, high))
    return None


def parameter_variable(name: str, part: str, low: int, high: int) -> Var:
    return Var(VarKind.PARAMETER, f"{name}.{part}" if part else name, low, high)


def bound_parameter(parameter: Parameter, facts: LaunchFacts, layout: Layout) -> Term | None:
    """A parameter at its value in the launch (signed); a tensor at its virtual address."""
    argument = facts.arguments.get(parameter.name)
    element = parameter.value.element
    pattern = argument_pattern(parameter, argument)
    if pattern is None or isinstance(element, Float):
        return None
    if isinstance(element, Int):
        if element.bits == 1:
            return TRUE if pattern else FALSE
        half = 1 << (element.bits - 1)
        return number((pattern + half) % (2 * half) - half)
    storage = storage_of(argument)
    return number(pattern if storage is None else layout.virtual(storage, pattern))


def unwritten_loads(program: Program, facts: LaunchFacts) -> frozenset[int]:
    """The accesses (by index) whose tensors no access may write: what they read depends on the address alone."""
    memory = launch_memory(program, facts)
    quiet = {
        (s.address, s.nbytes) for s, changing in zip(memory.storages, memory.changing, strict=True) if changing is None
    }
    out = set()
    for index, names in pointer_roots(program).items():
        storages = [s for s in map(storage_of, (facts.arguments.get(n) for n in names or ())) if s is not None]
        if names is not None and storages and all((s.address, s.nbytes) in quiet for s in storages):
            out.add(index)
    return frozenset(out)


def tensors_apart(program: Program, facts: LaunchFacts) -> bool:
    """True when a proof per tensor stands for any launch whose tensors do not overlap, this one included."""
    storages = [storage_of(a) for a in facts.arguments.values()]
    held = [(s.address, s.address + s.nbytes) for s in storages if s is not None]
    spans = sorted(set(held))
    if len(spans) != len(held) or any(a[1] > b[0] for a, b in pairwise(spans)):
        return False
    return all(names is not None and len(names) == 1 for names in pointer_roots(program).values())


def meeting_pairs(program: Program, facts: LaunchFacts, *, by_name: bool) -> set[tuple[int, int]]:
    """The pairs of accesses (by index) whose tensors may be the same, or may overlap."""
    roots = pointer_roots(program)
    indices = [a.index for a in accesses(program)]
    spans = {i: _spans(roots[i], facts) for i in indices}
    out = set()
    for n, a in enumerate(indices):
        for b in indices[n:]:
            if by_name:
                meets = roots[a] == roots[b]
            else:
                one, other = spans[a], spans[b]
                meets = one is None or other is None or any(x[0] < y[1] and y[0] < x[1] for x in one for y in other)
            if meets:
                out.add((a, b))
    return out


def _spans(names: frozenset[str] | None, facts: LaunchFacts) -> Spans | None:
    if names is None:
        return None
    storages = [s for s in map(storage_of, (facts.arguments.get(n) for n in sorted(names))) if s is not None]
    return tuple((s.address, s.address + s.nbytes) for s in storages) or None


def tensor_ranges(program: Program, facts: LaunchFacts, layout: Layout) -> dict[int, Spans]:
    """The virtual byte ranges of the storages each access belongs to."""
    out = {}
    for index, names in pointer_roots(program).items():
        spans = _spans(names, facts)
        if spans is not None:
            out[index] = tuple((a + layout.shifts[a], b + layout.shifts[a]) for a, b in spans)
    return out


def held_storages(facts: LaunchFacts) -> tuple[Storage, ...]:
    return tuple(s for s in map(storage_of, facts.arguments.values()) if s is not None)
