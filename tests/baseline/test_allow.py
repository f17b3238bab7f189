"""Comments that allow a race: what they allow, what they leave, and which ones are told to be stale."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from baseline_kernels import Check
from click.testing import Result

from racefree.access import Site
from racefree.allow import Allowance, in_functions, parse
from racefree.report.allowances import by_comments
from racefree.report.model import Finding, Side, Subject
from racefree.report.rules import RULES
from racefree.verdict import Status

STORE = "    tl.store(out + offsets, 1)"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def last_line(done: Result) -> str:
    return done.stdout.rstrip("\n").splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = 1  # racefree: allow[RF001] both write 0", Allowance(3, ("RF001",), "both write 0")),
        ("#racefree:allow[rf001, RF005] why", Allowance(3, ("RF001", "RF005"), "why")),
        ("x = 1  # nothing of ours", None),
    ],
)
def test_parse(text: str, found: Allowance | None) -> None:
    assert parse(text, 3, RULES) == found


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# racefree: ignore", "not understood; write # racefree: allow[RF001] reason"),
        ("# racefree: allow RF001 because", "not understood; write # racefree: allow[RF001] reason"),
        ("# racefree: allow[RF001]", "gives no reason, so it allows nothing"),
        ("# racefree: allow[RF999] why", "RF999 is no rule; the rules are RF001, "),
        ("# racefree: allow[] why", "nothing is no rule"),
    ],
)
def test_comments_with_a_problem(text: str, problem: str) -> None:
    found = parse(text, 1, RULES)
    assert found is not None
    assert found.problem.startswith(problem)


def test_only_comments_inside_the_named_functions() -> None:
    source = """\
# racefree: allow[RF001] outside
@decorate
def one(a,
        b):
    x = "# racefree: allow[RF001] in a text"
    return x  # racefree: allow[RF002] inside


def two():
    return 1  # racefree: allow[RF003] in another
"""
    lines = source.splitlines(keepends=True)
    for head in (2, 3, 4):
        assert [found.line for found in in_functions(lines, [head], RULES)] == [6]
    assert [found.line for found in in_functions(lines, [9, 3], RULES)] == [6, 10]
    assert in_functions(lines, [], RULES) == ()


@pytest.mark.parametrize(
    "allowed",
    [
        f"{STORE}  # racefree: allow[RF001] same value",
        f"    # racefree: allow[RF001] same value\n{STORE}",
        f"    # racefree: allow[RF001] same value\n    # really\n{STORE}",
    ],
)
def test_allowed_race_is_set_aside(allowed: str, kernels: Path, check: Check) -> None:
    edit(kernels, STORE, allowed)
    done = check("--verbose", "kernels.py")
    assert last_line(done) == (
        "2 launches: 1 races in 1, 0 not analysed, 0 vacuous, 0 proved race-free; 1 races allowed"
    )
    assert "allowed: RF001 write-write between programs on out[8] (twice): same value, kernels.py:14" in done.stdout
    assert done.exit_code == 1


@pytest.mark.parametrize(
    "comment", ["# racefree: allow[RF002] another rule", "# racefree: allow[RF001]", "# allow[RF001] not ours"]
)
def test_other_comments_allow_nothing(comment: str, kernels: Path, check: Check) -> None:
    edit(kernels, STORE, f"{STORE}  {comment}")
    done = check("kernels.py")
    assert last_line(done) == "2 launches: 2 races in 2, 0 not analysed, 0 vacuous, 0 proved race-free"


def test_a_comment_above_code_in_between_allows_nothing(kernels: Path, check: Check) -> None:
    edit(kernels, "    offsets = ", "    # racefree: allow[RF001] too far up\n    offsets = ")
    done = check("kernels.py")
    assert "2 races in 2" in last_line(done)
    assert "note: kernels.py:13: stale comment: allow[RF001] allows no race of this run" in done.stdout


def test_all_allowed_exits_0_and_proves_nothing(kernels: Path, check: Check) -> None:
    edit(kernels, STORE, f"{STORE}  # racefree: allow[RF001] same value")
    edit(kernels, "tl.arange(0, 16), value)", "tl.arange(0, 16), value)  # racefree: allow[RF001] same value")
    done = check("kernels.py", "--nothing-of-ours")
    assert last_line(done).endswith("0 races in 0, 0 not analysed, 0 vacuous, 0 proved race-free; 2 races allowed")
    assert done.exit_code == 0


def test_stale_comment_is_told_only_for_kernels_that_ran(kernels: Path, check: Check) -> None:
    edit(kernels, "    twice[(4,)](ints(), STEP=8)\n", "")
    edit(kernels, "put[(4,)](ints(), 1, STEP=8)", "put[(4,)](ints(), 1, STEP=16)")
    edit(kernels, STORE, f"{STORE}  # racefree: allow[RF001] of a kernel that was not launched")
    edit(kernels, "tl.arange(0, 16), value)", "tl.arange(0, 16), value)  # racefree: allow[RF001] no more")
    done = check("kernels.py")
    assert [line for line in done.stdout.splitlines() if "stale" in line] == [
        "note: kernels.py:8: stale comment: allow[RF001] allows no race of this run"
    ]
    assert done.exit_code == 0


def test_what_was_not_analysed_still_counts(kernels: Path, check: Check) -> None:
    edit(kernels, STORE, f"{STORE}  # racefree: allow[RF001] same value")
    edit(kernels, "tl.arange(0, 16), value)", "tl.arange(0, 16), no_such_name)")
    done = check("kernels.py")
    assert last_line(done) == (
        "2 launches: 0 races in 0, 1 not analysed, 0 vacuous, 0 proved race-free; 1 races allowed"
    )
    assert done.exit_code == 3


def test_a_call_of_a_function_that_accesses_may_carry_the_comment(kernels: Path, check: Check) -> None:
    helper = "@triton.jit\ndef fill(at):\n    tl.store(at, 1)\n\n\n"
    edit(kernels, "@triton.jit\ndef twice", f"{helper}@triton.jit\ndef twice")
    edit(kernels, STORE, "    fill(out + offsets)  # racefree: allow[RF001] same value")
    done = check("kernels.py")
    assert last_line(done).endswith("; 1 races allowed")
    assert "1 races in 1" in last_line(done)


def test_machine_formats(kernels: Path, check: Check, tmp_path: Path) -> None:
    edit(kernels, STORE, f"{STORE}  # racefree: allow[RF001] same value")
    outputs = [
        f"--output={name}={tmp_path}/{name}" for name in ("sarif", "sarif-github", "json", "junit", "markdown", "html")
    ]
    check(*outputs, "kernels.py")
    results = json.loads((tmp_path / "sarif").read_text())["runs"][0]["results"]
    races = [result for result in results if result["ruleId"] == "RF001"]
    assert [race.get("suppressions") for race in races] == [
        None,
        [{"kind": "inSource", "justification": "same value, kernels.py:14"}],
    ]
    assert len(json.loads((tmp_path / "sarif-github").read_text())["runs"][0]["results"]) == 1
    assert json.loads((tmp_path / "json").read_text())["summary"]["allowed"] == 1
    assert 'failures="1"' in (tmp_path / "junit").read_text()
    assert "## Allowed" in (tmp_path / "markdown").read_text()
    assert (
        "| `twice` | `kernels.py:14:5` | RF001 on `out[8]` | same value, kernels.py:14 |"
        in (tmp_path / "markdown").read_text()
    )
    page = (tmp_path / "html").read_text()
    assert '"status":"allowed"' in page
    assert "lane 0: same value, kernels.py:14" in page


def test_comment_beside_an_instruction_of_an_engine_program() -> None:
    """The sites of an engine program are the source lines of the kernel it was compiled from."""
    here = Site("/project/kernel.py", 12)
    sides = [Side(f"{word} write", True, f"I-{n} on E{n}", "a", here) for n, word in enumerate(("Copy", "Add"))]
    finding = Finding("RF101", "WAW", *sides, "nothing orders them")
    subject = Subject("engine program", "sg0", Status.RACES, findings=(finding,), unlisted=2)
    for rule, left in (("RF101", 0), ("RF102", 1)):
        sources = {here.file: {12: f"copy(a)  # racefree: allow[{rule}] both write zeros"}}
        (found,) = by_comments((subject,), sources)
        assert len(found.findings) == left
        assert found.standing is Status.RACES
    (alone,) = by_comments((replace(subject, unlisted=0),), {here.file: {12: "a  # racefree: allow[RF101] zeros"}})
    assert alone.standing is None
