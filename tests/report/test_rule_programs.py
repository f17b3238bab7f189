"""The examples that explain the rules of engine programs are programs: built as they are written, and checked."""

from __future__ import annotations

import re
from typing import Any

import pytest

from racefree.access import Pattern
from racefree.engines.builder import ProgramBuilder
from racefree.engines.check import check
from racefree.engines.program import AccessFlag, InstructionFlag, MemoryKind
from racefree.report.engine_programs import subject
from racefree.report.rules import CORES_APART, ENGINE_READ_WRITE, ENGINE_WRITES, RULES
from racefree.verdict import Status

CLAUSE = re.compile(
    r"(?P<access>write|read) +(?P<memory>SBUF|DRAM)\[(?P<start>\d+):(?P<end>\d+)\]"
    r"|wait until (?P<waited>\w+) >= (?P<value>\d+)"
    r"|raise (?P<raised>\w+) by (?P<amount>\d+) at completion"
    r"|(?P<barrier>core barrier)"
)


def clauses(text: str) -> list[tuple[str, list[dict[str, str]]]]:
    """(who, what it does) for each line; nothing of a line may be left over but punctuation and remarks in brackets."""
    found = []
    for line in text.splitlines():
        who, _, rest = line.partition(":")
        rest = re.sub(r"\([^)]*\)", "", rest)
        assert re.fullmatch(r"[\s;]*", CLAUSE.sub("", rest)), line
        found.append((who.strip(), [match.groupdict() for match in CLAUSE.finditer(rest)]))
    return found


def engine_program(text: str) -> Any:
    builder = ProgramBuilder("example")
    space = builder.space(MemoryKind.SBUF, "SBUF")
    buffer = builder.buffer("tile", space, initialised=True)
    for number, (who, parts) in enumerate(clauses(text)):
        transfers = "queue" in who
        flags = InstructionFlag.ASYNC if transfers else InstructionFlag.NONE
        queue = builder.queue(who) if transfers else -1
        row = builder.instruction(
            f"I-{number}", "DMACopy" if transfers else "Copy", builder.engine(who), queue=queue, flags=flags
        )
        for part in parts:
            if part["access"]:
                start, end = int(part["start"]), int(part["end"])
                write = AccessFlag.WRITE if part["access"] == "write" else AccessFlag.NONE
                footprint = builder.footprint(space, Pattern(start, end - start), Pattern(0, 1))
                builder.access(row, footprint, buffer, write)
            elif part["waited"]:
                builder.wait(row, builder.semaphore(part["waited"]), int(part["value"]))
            else:
                builder.update(row, builder.semaphore(part["raised"]), int(part["amount"]))
    return builder.build()


@pytest.mark.parametrize("rule", [ENGINE_WRITES, ENGINE_READ_WRITE])
def test_engine_examples(rule: str) -> None:
    racy = subject(check(engine_program(RULES[rule].racy), order="semaphores"), file="racy")
    assert [finding.rule for finding in racy.findings] == [rule]
    fixed = check(engine_program(RULES[rule].fixed), order="semaphores")
    assert fixed.status is Status.OK, fixed


def cores(text: str) -> Any:
    from bir_documents import STANDARD, ap, instruction, location, module, tensor

    from racefree.neuron.lnc import check_cores
    from racefree.neuron.reading import from_value

    shared = [*STANDARD, tensor(location("s", "DRAM", addr=4096), addr_space="Shared")]
    modules = []
    for core, (_, parts) in enumerate(clauses(text)):
        body, barriers = [], 0
        for number, part in enumerate(parts):
            if part["barrier"]:
                body.append(instruction(f"B{number}", "ALL", opcode="CoreBarrier", id=barriers))
                barriers += 1
            else:
                pattern = [ap("s", [[1, (int(part["end"]) - int(part["start"])) // 4]])]
                body.append(
                    instruction(f"I{number}", "DVE", **{"writes" if part["access"] == "write" else "reads": pattern})
                )
        modules.append(from_value(module(body, core=core, allocations=shared)))
    (found,) = check_cores(modules, order="dependencies")
    return found


def test_examples_of_two_cores() -> None:
    racy, fixed = cores(RULES[CORES_APART].racy), cores(RULES[CORES_APART].fixed)
    assert (racy.status, len(racy.races)) == (Status.RACES, 1), racy
    assert fixed.status is Status.OK, fixed


def test_every_rule_is_tried_somewhere() -> None:
    """Those of kernels are launched by another test, which takes every rule of this form."""
    kernels = {name for name, rule in RULES.items() if "@triton.jit" in rule.racy and "@triton.jit" in rule.fixed}
    assert kernels == {name for name in RULES if name.startswith("RF0")}
    assert set(RULES) - kernels == {ENGINE_WRITES, ENGINE_READ_WRITE, CORES_APART}
