"""Turns a witness of two executions into the record a report shows."""

from __future__ import annotations

from typing import Any

from racefree.access import Site
from racefree.graph.launch import Descriptor, LaunchFacts, Tensor
from racefree.graph.program import Program
from racefree.proof.footprint.memory import argument_of
from racefree.proof.footprint.slicing import pointer_roots
from racefree.proof.outcome import Side, Witness
from racefree.verdict import CompiledRaceRecord, RaceAccess, SourceLine


def source_line(site: Site) -> SourceLine:
    return site.file, site.line, site.function


class Recorder:
    """Names tensors and elements for the witnesses of one launch."""

    def __init__(self, program: Program, facts: LaunchFacts) -> None:
        self._program, self._facts = program, facts
        self._roots = pointer_roots(program)

    def record(self, witness: Witness, *, status: str = "confirmed") -> CompiledRaceRecord:
        first, second = self._access(witness.first), self._access(witness.second)
        programs = (witness.first.program, witness.second.program)
        config: dict[str, Any] = dict(self._facts.config)
        return CompiledRaceRecord(witness.race_type, first, second, programs, witness.reason, config, status)

    def _access(self, side: Side) -> RaceAccess:
        access = side.access
        name, tensor = self._tensor(side)
        element = None
        if tensor is not None and side.address_bytes is not None:
            element = (side.address_bytes - tensor.address) // max(tensor.element_bytes, 1)
        return RaceAccess(
            op=access.kind.value if access.rmw is None else f"{access.kind.value} {access.rmw}",
            write=access.kind.writes,
            atomic=access.kind.atomic,
            tensor=name,
            source=source_line(access.site),
            element=element,
            lane=side.lane,
            iterations=side.iterations,
            address_bytes=side.address_bytes,
            element_bytes=access.element_bytes,
            callers=tuple(source_line(c) for c in access.site.callers),
        )

    def _tensor(self, side: Side) -> tuple[str, Tensor | None]:
        """The argument the access goes through; of several, the one whose storage holds the byte."""
        found: list[tuple[str, Tensor]] = []
        for root in sorted(self._roots.get(side.access.pointer.index, frozenset())):
            places = range(len(self._program.parameters)) if root < 0 else (root,)
            for place in places:
                parameter = self._program.parameters[place]
                argument = argument_of(parameter, self._facts)
                if isinstance(argument, Tensor | Descriptor):
                    found.append((parameter.name, argument if isinstance(argument, Tensor) else argument.base))
        for name, tensor in found:
            storage = tensor.storage
            if side.address_bytes is not None and 0 <= side.address_bytes - storage.address < storage.nbytes:
                return name, tensor
        return found[0] if found else ("", None)
