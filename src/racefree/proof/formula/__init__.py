"""Says how one execution computed its address: `pid*32 + lane = 1*32 + 0 = 32`, in elements of the tensor."""

from __future__ import annotations

from racefree.graph.launch import LaunchFacts, Tensor
from racefree.graph.program import Program
from racefree.proof.formula.operations import Unsaid
from racefree.proof.formula.reading import Reader, definitions, loops_around
from racefree.proof.formula.terms import Term, chain
from racefree.proof.outcome import Side
from racefree.proof.replay.memory import launch_memory

WIDTH = 80
"""The longest formula worth reading, in characters."""


class Formulas:
    """The formulas of one launch."""

    def __init__(self, program: Program, facts: LaunchFacts) -> None:
        self._facts = facts
        self._memory = launch_memory(program, facts)
        self._defined = definitions(program)
        self._loops = loops_around(program)

    def term(self, side: Side, name: str, tensor: Tensor) -> Term | None:
        """The element of `tensor`, the argument `name`, that an execution touches; None when it cannot be said simply.

        Whatever was read, the result is compared with the address of the witness, so that a formula is never wrong at it.
        """
        reader = Reader(self._facts, self._memory, side, self._defined, self._loops[side.access.index])
        try:
            root, term = reader.address()
        except (Unsaid, RecursionError):
            return None
        if root != name or side.access.element_bytes != tensor.element_bytes:
            return None
        return term if tensor.address + term.value * tensor.element_bytes == side.address_bytes else None


def said(term: Term | None) -> str:
    """The formula with its values and its result; "" where there is none, or none short enough."""
    return "" if term is None else chain(term, width=WIDTH)
