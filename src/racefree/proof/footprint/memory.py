"""The launch's storages in one virtual address space, and what their integers held before the launch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.access import Site
from racefree.errors import Refused
from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Scalar, Storage, Tensor
from racefree.graph.program import Parameter, Program
from racefree.proof.footprint.values import I64, Bits

GAP_BYTES = 1 << 48
"""Storages that do not overlap are moved this far apart, so that running off one never lands in another."""

_KEPT = (1 << 40) - 1


@dataclass(frozen=True, slots=True)
class Cluster:
    """Storages whose byte ranges meet, as one range: real [start, end), shifted by `shift` to its virtual place."""

    start: int
    end: int
    shift: int
    storages: tuple[Storage, ...]


class AddressSpace:
    """Maps real addresses of one launch to virtual ones, tensors to clusters, and virtual bytes to contents."""

    def __init__(self, program: Program, facts: LaunchFacts) -> None:
        self.facts = facts
        self.tensors: dict[int, Tensor] = {}
        for position, parameter in enumerate(program.parameters):
            argument = argument_of(parameter, facts)
            if isinstance(argument, Tensor | Descriptor):
                self.tensors[position] = argument if isinstance(argument, Tensor) else argument.base
        self.clusters = _clusters([t.storage for t in self.tensors.values()])

    def cluster_of(self, storage: Storage) -> int:
        for number, cluster in enumerate(self.clusters):
            if cluster.start <= storage.address and storage.address + storage.nbytes <= cluster.end:
                return number
        raise AssertionError("every argument's storage is in a cluster")

    def virtual(self, address: int, cluster: int) -> int:
        return address + self.clusters[cluster].shift

    def origin(self, cluster: int) -> int:
        """The virtual address that offsets into a cluster count from (0 outside every cluster)."""
        return 0 if cluster < 0 else self.clusters[cluster].start + self.clusters[cluster].shift

    def real(self, virtual_bytes: int) -> int:
        """The address a virtual one stands for."""
        return int(self.to_integer(np.array([virtual_bytes], dtype=np.int64))[0])

    def home(self, virtual_bytes: I64) -> I64:
        """The cluster a virtual address belongs to (as an offset from it, however far), -1 for none."""
        number = (virtual_bytes + GAP_BYTES // 2) // GAP_BYTES - 1
        return np.where((number >= 0) & (number < len(self.clusters)), number, -1)

    def from_integer(self, address: I64) -> I64:
        """Integers that hold real addresses of a known storage, as virtual ones; others unchanged."""
        out = address
        for cluster in self.clusters:
            inside = (address >= cluster.start) & (address < max(cluster.end, cluster.start + 1))
            out = np.where(inside, address + cluster.shift, out)
        return out

    def to_integer(self, virtual_bytes: I64) -> I64:
        """The real addresses that virtual ones stand for; what belongs to no cluster is real already."""
        shifts = np.array([cluster.shift for cluster in self.clusters] + [0], dtype=np.int64)
        out: I64 = virtual_bytes - shifts[self.home(virtual_bytes)]
        return out

    def read(self, virtual_bytes: I64, width: int, active: Bits) -> tuple[I64, Bits, str]:
        """The signed integers of `width` bytes at these addresses, which are known, and why not where they are not."""
        data = np.zeros(virtual_bytes.shape, dtype=np.int64)
        known = np.zeros(virtual_bytes.shape, dtype=np.bool_)
        why = "it reads outside every recorded tensor"
        for cluster in self.clusters:
            for storage in cluster.storages:
                at = virtual_bytes - (storage.address + cluster.shift)
                inside = active & ~known & (at >= 0) & (at + width <= storage.nbytes)
                if not inside.any():
                    continue
                if storage.contents is None:
                    why = storage.why_unknown
                    continue
                offsets = at[inside]
                raw = np.zeros(offsets.shape, dtype=np.uint64)
                for byte in range(width):
                    raw |= storage.contents[offsets + byte].astype(np.uint64) << np.uint64(8 * byte)
                data[inside] = _signed(raw, width)
                known |= inside
        return data, known, why


def _signed(raw: npt.NDArray[np.uint64], width: int) -> I64:
    if width == 8:
        return raw.view(np.int64)
    half = np.int64(1) << np.int64(8 * width - 1)
    return ((raw.astype(np.int64)) ^ half) - half


def _clusters(storages: list[Storage]) -> tuple[Cluster, ...]:
    unique = {(s.address, s.nbytes): s for s in storages}
    out: list[Cluster] = []
    group: list[Storage] = []
    end = 0

    def close() -> None:
        if group:
            start = group[0].address
            out.append(Cluster(start, end, (len(out) + 1) * GAP_BYTES + (start & _KEPT) - start, tuple(group)))

    for key in sorted(unique):
        storage = unique[key]
        if group and storage.address < end:
            group.append(storage)
        else:
            close()
            group = [storage]
        end = max(end, storage.address + storage.nbytes) if len(group) > 1 else storage.address + storage.nbytes
    close()
    return tuple(out)


def argument_of(parameter: Parameter, facts: LaunchFacts) -> Argument:
    """What the launch bound to a parameter of the compiled kernel."""
    argument = facts.arguments.get(parameter.name)
    if argument is None:
        raise Refused("missing-binding", f"the launch gives no value for the parameter {parameter.name!r}")
    return argument


def scalar_part(parameter: Parameter, facts: LaunchFacts, site: Site) -> int | None:
    """The integer value of a scalar parameter or of a shape or stride part of a descriptor; None for a float."""
    argument = argument_of(parameter, facts)
    match argument:
        case Scalar():
            return None if argument.value is None or isinstance(argument.value, float) else int(argument.value)
        case Descriptor():
            for prefix, numbers in (("shape", argument.shape), ("stride", argument.strides)):
                if parameter.part.startswith(prefix):
                    return numbers[int(parameter.part[len(prefix) :])]
    raise Refused("missing-binding", f"the parameter {parameter.name!r} is bound to something unexpected", site)
