"""Turns a witness of two executions into the record a report shows."""

from __future__ import annotations

from dataclasses import dataclass

from racefree.graph.launch import Descriptor, LaunchFacts, Tensor
from racefree.graph.program import Program
from racefree.proof.footprint.memory import argument_of
from racefree.proof.footprint.slicing import ANYWHERE, pointer_roots
from racefree.proof.formula import Formulas, said
from racefree.proof.formula.terms import Term
from racefree.proof.hints import Question, hint
from racefree.proof.outcome import Side, Witness
from racefree.sources import placed
from racefree.verdict import CompiledRaceRecord, RaceAccess


@dataclass(frozen=True, slots=True)
class _Through:
    """The tensor argument an access goes through, the element it touches, and how that came about."""

    name: str
    element: int | None = None
    term: Term | None = None


class Recorder:
    """Names tensors and elements for the witnesses of one launch."""

    def __init__(self, program: Program, facts: LaunchFacts) -> None:
        self._program, self._facts = program, facts
        self._roots = pointer_roots(program)
        self._formulas = Formulas(program, facts)

    def record(self, witness: Witness, *, status: str = "confirmed") -> CompiledRaceRecord:
        first, second = self._through(witness.first), self._through(witness.second)
        found = hint(
            Question(self._program, self._facts, witness, (first.name, second.name), (first.term, second.term))
        )
        return CompiledRaceRecord(
            race_type=witness.race_type,
            first=self._access(witness.first, first),
            second=self._access(witness.second, second),
            programs=(witness.first.program, witness.second.program),
            reason=witness.reason,
            config=dict(self._facts.config),
            witness=status,
            cause=found.cause,
            hint=found.text,
        )

    def _through(self, side: Side) -> _Through:
        name, tensor = self._tensor(side)
        if tensor is None or side.address_bytes is None:
            return _Through(name)
        element = (side.address_bytes - tensor.address) // max(tensor.element_bytes, 1)
        return _Through(name, element, self._formulas.term(side, name, tensor))

    def _access(self, side: Side, through: _Through) -> RaceAccess:
        access = side.access
        site = placed(access.site)
        return RaceAccess(
            op=access.kind.value if access.rmw is None else f"{access.kind.value} {access.rmw}",
            write=access.kind.writes,
            atomic=access.kind.atomic,
            tensor=through.name,
            source=(site.file, site.line, site.function),
            element=through.element,
            lane=side.lane,
            iterations=side.iterations,
            address_bytes=side.address_bytes,
            element_bytes=access.element_bytes,
            callers=site.callers,
            column=site.column,
            arithmetic=said(through.term),
        )

    def _tensor(self, side: Side) -> tuple[str, Tensor | None]:
        """The argument the access goes through; of several, the one whose storage holds the byte.

        None where the pointer is made from an integer and leads to memory that is in no argument.
        """
        found: list[tuple[str, Tensor]] = []
        roots = self._roots.get(side.access.pointer.index, frozenset())
        for root in sorted(roots):
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
        return found[0] if found and ANYWHERE not in roots else ("", None)
