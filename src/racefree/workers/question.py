"""One config of one launch as a question that can be answered anywhere, and its answer."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from racefree.errors import Refusal, Refused
from racefree.graph.launch import LaunchFacts
from racefree.verdict import RaceConfigVerdict, Status

if TYPE_CHECKING:
    from racefree.proof.rungs import Options
    from racefree.ttir.generic import GenericModule

INTERNAL_ERROR = "internal-error"
"""The refusal kind of a config whose analysis failed by a fault of racefree itself."""


@dataclass(frozen=True, slots=True)
class Question:
    """A compiled module, what a launch gives it, and how hard to try."""

    module: GenericModule
    facts: LaunchFacts
    options: Options


@dataclass(frozen=True, slots=True)
class Answer:
    """`written` names the parameters whose tensors may be written, None if that is not known. `fault` is a traceback."""

    verdict: RaceConfigVerdict
    written: frozenset[str] | None = None
    fault: str = ""


def answer(question: Question) -> Answer:
    """Only an interrupt is ever raised."""
    from racefree.graph.written import written_parameters
    from racefree.proof.rungs import decide
    from racefree.ttir.read import read_program

    start = time.perf_counter()
    written, fault = None, ""
    try:
        program = read_program(question.module)
        written = written_parameters(program)
        verdict = decide(program, question.facts, question.options)
    except Refused as refused:
        verdict = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refused.refusal)
    except Exception as error:
        fault = traceback.format_exc()
        verdict = RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=internal(error))
    return Answer(replace(verdict, seconds=time.perf_counter() - start), written, fault)


def internal(error: Exception) -> Refusal:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {frames[-1].name}" if frames else ""
    return Refusal(INTERNAL_ERROR, f"racefree failed{where}: {type(error).__name__}: {error}; please report this")
