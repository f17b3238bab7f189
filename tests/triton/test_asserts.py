"""Assertions of a script about results of kernels that were not run."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import pytest

from racefree.triton.asserts import run_script

SCRIPT = """\
import sys

log = []


class Check:
    def holds(self, value):
        assert value > 0, f"{value} is not positive"
        log.append(value)


def note(value):
    log.append(value)
    return False


assert True
try:
    Check().holds(-1)
except AssertionError as error:
    log.append(str(error))
assert note("evaluated")
log.append((__name__, __file__, sys.modules["__main__"].__dict__ is globals()))
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


def test_a_failing_assert_goes_on_and_is_evaluated(tmp_path: Path) -> None:
    path, main = written(tmp_path, SCRIPT), sys.modules["__main__"]
    assert run_script(path, lambda: True)["log"] == [-1, "evaluated", ("__main__", str(path), True)]
    assert sys.modules["__main__"] is main


def test_without_leave_an_assert_fails_at_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, SCRIPT)
    with pytest.raises(AssertionError) as caught:
        run_script(path, lambda: False)
    (frame,) = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == str(path)]
    assert frame.lineno == SCRIPT.splitlines().index('assert note("evaluated")') + 1


def test_other_errors_and_exits_are_the_script_s(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run_script(written(tmp_path, "assert 1 / 0"), lambda: True)
    with pytest.raises(SystemExit):
        run_script(written(tmp_path, "raise SystemExit(3)"), lambda: True)
    with pytest.raises(SyntaxError):
        run_script(written(tmp_path, "assert (\n"), lambda: True)
