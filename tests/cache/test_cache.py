"""A kept proof answers the same question and no other; nothing else is kept, and no damage changes an answer."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cache_kernels as kernels
import pytest
import torch

from racefree import analysis
from racefree import cache as caches
from racefree.analysis import Analyst
from racefree.cache import FILE, KEPT_DAYS, Cache
from racefree.config import Settings, settings
from racefree.errors import InputError, Refusal
from racefree.launch import Launch
from racefree.triton.capture import capture_one
from racefree.verdict import (
    ASSUMES_TERMINATION,
    CompiledRaceRecord,
    ProofScope,
    RaceAccess,
    RaceConfigVerdict,
    Status,
)
from racefree.workers.crew import Crew
from racefree.workers.question import Answer, Question

SOURCE = Path(kernels.__file__)


def proof(**more: Any) -> Answer:
    verdict = RaceConfigVerdict({}, Status.OK, "smt", ProofScope.THIS_PARAMS_ANY_GRID, (ASSUMES_TERMINATION,), **more)
    return Answer(verdict, frozenset({"out", "x"}))


def fragile() -> CompiledRaceRecord:
    access = RaceAccess("tt.store", True, False, "out", ("k.py", 3, "k"), 7, (1, 2), (0,), address_bytes=28, column=5)
    return CompiledRaceRecord("WAW", access, access, ((0, 0, 0), (9, 0, 0)), "nothing orders them")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """Every question that is put to the rungs from here on."""
    questions: list[Question] = []
    ask = Crew.ask

    def counted(crew: Crew, given: Any, got: Any) -> None:
        questions.extend(given)
        ask(crew, given, got)

    monkeypatch.setattr(Crew, "ask", counted)
    return questions


def decided(
    folder: Path, kernel: Any, args: list[Any], grid: int, *, set_to: dict[str, Any] | None = None, **meta: Any
) -> Launch:
    """As a process of its own would decide it that uses the cache in the folder."""
    chosen = Settings(cache=str(folder), jobs=1, **set_to or {})
    return Analyst(chosen).decide(capture_one(kernel, args, meta, (grid,))).launch


def filled(folder: Path, *, step: int = 16, grid: int = 4, **set_to: Any) -> Launch:
    out = torch.zeros(4096, dtype=torch.int32)
    return decided(folder, kernels.fill, [out], grid, set_to=set_to, STEP=step, BLOCK=16)


def test_an_answer_reads_back_as_it_was(tmp_path: Path) -> None:
    cache = Cache.opened(tmp_path)
    for key, answer in {b"plain": proof(), b"fragile": proof(grid_fragile=(fragile(),))}.items():
        cache.keep(key, answer)
        assert Cache.opened(tmp_path).answers([key, b"another"]) == {key: answer}


@pytest.mark.parametrize("status", [Status.RACES, Status.UNSUPPORTED, Status.VACUOUS])
def test_only_proofs_are_kept(tmp_path: Path, status: Status) -> None:
    cache = Cache.opened(tmp_path)
    cache.keep(b"key", Answer(RaceConfigVerdict({}, status, refusal=Refusal("timeout", "too long"))))
    assert cache.answers([b"key"]) == {}


def test_what_does_not_read_back_as_it_was_is_not_kept(tmp_path: Path) -> None:
    cache = Cache.opened(tmp_path)
    cache.keep(b"key", Answer(RaceConfigVerdict({"hook": print}, Status.OK)))
    assert cache.answers([b"key"]) == {}


def test_a_kept_proof_is_the_answer_to_the_same_launch(tmp_path: Path, asked: list[Question]) -> None:
    first = filled(tmp_path)
    assert len(asked) == 1
    second = filled(tmp_path)
    assert len(asked) == 1
    assert (first.verdict.status, second.verdict.status) == (Status.OK, Status.OK)
    assert second.verdict.scope is first.verdict.scope
    assert second.verdict.qualifiers == first.verdict.qualifiers
    assert second.verdict.seconds == 0.0


@pytest.mark.parametrize(
    "change", [{"step": 8}, {"grid": 5}, {"lanes": "strict"}, {"scope": "launch"}, {"budget": 2.0}]
)
def test_another_question_is_asked_anew(tmp_path: Path, asked: list[Question], change: dict[str, Any]) -> None:
    filled(tmp_path)
    changed = filled(tmp_path, **change)
    assert len(asked) == 2
    assert changed.verdict.status is (Status.RACES if "step" in change else Status.OK)


def test_other_contents_are_another_question(tmp_path: Path, asked: list[Question]) -> None:
    """The racy twin of a proved launch differs in one number of a table."""
    table, out = torch.arange(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    assert decided(tmp_path, kernels.scatter, [table, out], 4, BLOCK=16).verdict.status is Status.OK
    table[40] = 3
    assert decided(tmp_path, kernels.scatter, [table, out], 4, BLOCK=16).verdict.status is Status.RACES
    assert len(asked) == 2


def test_a_race_is_found_each_time(tmp_path: Path, asked: list[Question]) -> None:
    first, second = filled(tmp_path, step=8), filled(tmp_path, step=8)
    assert len(asked) == 2
    assert first.races == second.races != ()


@pytest.mark.parametrize("part", ["our own sources", "a solver"])
def test_another_prover_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    Cache.opened(tmp_path).keep(b"key", proof())
    caches._prover.cache_clear()
    if part == "a solver":
        monkeypatch.setattr(caches, "version", lambda name: "0.0.1")
    else:
        package = tmp_path / "package"
        package.mkdir()
        (package / "cache.py").write_text("changed = True\n")
        monkeypatch.setattr(caches, "__file__", str(package / "cache.py"))
    assert Cache.opened(tmp_path).answers([b"key"]) == {}
    monkeypatch.undo()
    caches._prover.cache_clear()
    assert Cache.opened(tmp_path).answers([b"key"]) == {b"key": proof()}


def test_an_old_proof_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache.opened(tmp_path)
    cache.keep(b"key", proof())
    today = caches._today()
    monkeypatch.setattr(caches, "_today", lambda: today + KEPT_DAYS - 1)
    assert Cache.opened(tmp_path).answers([b"key"]) == {b"key": proof()}
    monkeypatch.setattr(caches, "_today", lambda: today + KEPT_DAYS + 1)
    assert Cache.opened(tmp_path).answers([b"key"]) == {}


@pytest.mark.parametrize(
    "damage",
    ["{}", "[1", '{"verdict": {"config": {}, "status": "races"}, "written": null, "fault": ""}', "\0\0", 17, None],
)
def test_a_damaged_row_is_no_answer(tmp_path: Path, damage: object) -> None:
    filled(tmp_path)
    connection = sqlite3.connect(tmp_path / FILE)
    with connection:
        connection.execute("UPDATE proofs SET answer = ?", (damage,))
    connection.close()
    assert filled(tmp_path).verdict.status is Status.OK


def test_a_file_lost_in_the_middle_costs_no_answer(tmp_path: Path, asked: list[Question]) -> None:
    chosen = Settings(cache=str(tmp_path / "kept"), jobs=1)
    analyst = Analyst(chosen)
    (tmp_path / "kept" / FILE).write_bytes(b"this is no database, and was one before" * 100)
    out = torch.zeros(64, dtype=torch.int32)
    launch = analyst.decide(capture_one(kernels.fill, [out], {"STEP": 16, "BLOCK": 16}, (4,))).launch
    assert launch.verdict.status is Status.OK
    assert not analyst.tracebacks


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("this is no database, and there was a lot of it" * 100)
    with pytest.raises(InputError, match=f"{FILE} cannot be used to keep proofs: file is not a database; delete it"):
        Cache.opened(tmp_path)
    with pytest.raises(InputError, match=r"cannot keep proofs in .*: Not a directory"):
        Cache.opened(tmp_path / FILE / "below")


def test_a_folder_of_the_users_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    Cache.opened(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    Cache.opened(tmp_path / "made" / "by us")
    assert (tmp_path / "made" / "by us" / ".gitignore").read_text() == "*\n"


def test_many_keep_and_read_at_once(tmp_path: Path) -> None:
    def one(number: int) -> int:
        cache = Cache.opened(tmp_path)
        cache.keep(b"%d" % number, proof(seconds=float(number)))
        return len(cache.answers([b"%d" % number]))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(40))) == [1] * 40


def test_a_project_names_the_folder_beside_its_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.racefree]\ncache = ".kept"\n')
    (tmp_path / "below").mkdir()
    assert settings(project=tmp_path / "below").cache == str(tmp_path / ".kept")


def test_the_command_uses_it(tmp_path: Path) -> None:
    """A second run of the command proves nothing: what it answers is what was kept, as a change of the kept answer shows."""
    script = tmp_path / "launch.py"
    script.write_text(
        SOURCE.read_text() + "\nimport torch\nfill[(4,)](torch.zeros(64, device='cuda'), STEP=16, BLOCK=16)\n"
    )

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "racefree", "check", "--verbose", *options, str(script)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    kept = f"--cache={tmp_path / 'kept'}"
    first = run(kept)
    assert "1 proved race-free" in first
    connection = sqlite3.connect(tmp_path / "kept" / FILE)
    with connection:
        connection.execute("""UPDATE proofs SET answer = replace(answer, '"rung": "affine"', '"rung": "as kept"')""")
    connection.close()
    assert "[as kept]" in run(kept)
    assert "[affine]" in run()


def test_a_proof_for_more_threads_is_kept_for_fewer(tmp_path: Path, asked: list[Question]) -> None:
    """Configs share what is kept as they share what is proved."""
    out = torch.zeros(4096, dtype=torch.int32)
    decided(tmp_path, kernels.fill, [out], 4, STEP=16, BLOCK=16, num_warps=4)
    analyst = Analyst(Settings(cache=str(tmp_path), jobs=1))
    for warps in (4, 2):
        captured = capture_one(kernels.fill, [out], {"STEP": 16, "BLOCK": 16, "num_warps": warps}, (4,))
        assert analyst.decide(captured).launch.verdict.status is Status.OK
    assert len(asked) == 1


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    captured = capture_one(kernels.fill, [torch.zeros(64)], {"STEP": 16, "BLOCK": 16}, (4,))
    assert analysis.Analyst(Settings(jobs=1)).decide(captured).launch.verdict.status is Status.OK
    assert not list(tmp_path.iterdir())
