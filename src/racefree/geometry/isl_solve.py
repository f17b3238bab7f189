"""Decides a reduced equation as the emptiness of an integer set."""

from __future__ import annotations

from racefree.geometry.equation import UNKNOWN, Unknown
from racefree.geometry.isl_process import SHARED, IslProcess
from racefree.geometry.reduction import Term

MOST_OPERATIONS = 1_000_000
"""About a second of isl."""

ANSWER_SECONDS = 2.0


def isl_solve(
    terms: tuple[Term, ...], target: int, *, process: IslProcess = SHARED, seconds: float = ANSWER_SECONDS
) -> list[int] | Unknown | None:
    """Values that sum to `target`, None when there are none, UNKNOWN when isl did not answer in time or is missing."""
    names = [f"z{i}" for i in range(len(terms))]
    ranges = [f"0 <= {name} <= {term.bound}" for name, term in zip(names, terms, strict=True)]
    total = "0" + "".join(f" + {term.step}{name}" for name, term in zip(names, terms, strict=True))
    points = f"{{ [{', '.join(names)}] : {' and '.join([f'{total} = {target}', *ranges])} }}"
    question = {"parts": [points], "point": True, "operations": MOST_OPERATIONS}
    answer = process.ask(question, seconds=seconds)
    if answer is None:
        return UNKNOWN
    return None if answer["empty"] else [int(value) for value in answer["point"]]
