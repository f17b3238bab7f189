"""What a source file says about a position in it, and how columns are counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lowering import read

from racefree.access import Site
from racefree.graph.program import accesses
from racefree.sources import function_around, placed
from racefree.ttir.generic import GenericModule, generic_form_of_text
from racefree.ttir.read import read_program

SOURCE = '''\
import triton


class Outer:
    @decorated
    def method(self):
        """é, then two accesses in one line."""
        def inner():
            é = load(1); store(2)
        return inner


after = 1
'''


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "source.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("line", "name"), [(1, ""), (5, "method"), (7, "method"), (9, "inner"), (13, ""), (99, "")])
def test_innermost_function_around_a_line(file: str, line: int, name: str) -> None:
    assert function_around(file, line) == name


def test_bytes_become_characters(file: str) -> None:
    line = SOURCE.splitlines()[8]
    for word in ("load", "store"):
        column = placed(Site(file, 9, len(line[: line.index(word)].encode()) + 1)).column
        assert line[column - 1 :].startswith(word)


def test_callers_are_named_too(file: str) -> None:
    found = placed(Site(file, 9, 1, "", (Site(file, 6, 1), Site(file, 13, 1, "main"))))
    assert (found.function, [caller.function for caller in found.callers]) == ("inner", ["method", "main"])


def test_without_the_file_nothing_changes() -> None:
    site = Site("/no/such/file.py", 3, 7, "", (Site("/no/such/file.py", 1),))
    assert placed(site) == site


def test_a_file_that_is_no_python_names_no_function(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def broken(:\n    pass\n")
    assert placed(Site(str(path), 2, 5)).function == ""


TTIR = """
module {
  tt.func public @fill(%out: !tt.ptr<i32>) {
    %lanes = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %base = tt.splat %out : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %at = tt.addptr %base, %lanes : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    tt.store %at, %lanes : tensor<16x!tt.ptr<i32>> loc("kernel.py":12:4)
    tt.return
  }
}
"""


@pytest.mark.parametrize(("version", "column"), [("3.7.1", 0), ("3.8.0", 4), ("3.9.0", 4), ("", 4)])
def test_columns_of_a_version_that_counts_otherwise_are_left_out(version: str, column: int) -> None:
    module: GenericModule = replace(generic_form_of_text(TTIR), triton_version=version)
    (access,) = accesses(read_program(module))
    assert (access.site.file, access.site.line, access.site.column) == ("kernel.py", 12, column)


def test_operations_without_a_location_are_lines_of_the_file_that_is_read() -> None:
    text = TTIR.replace(' loc("kernel.py":12:4)', "")
    (access,) = accesses(read_program(generic_form_of_text(text, file='a "strange"\\name.ttir')))
    assert (access.site.file, access.site.line, access.site.column) == ('a "strange"\\name.ttir', 7, 5)


def test_columns_point_at_the_call() -> None:
    import hint_kernels

    arguments = {"x": torch.zeros(256), "n": 200, "BLOCK": 64}
    program, _facts = read(hint_kernels.update_below_block, arguments, (2,), num_warps=4)
    lines = Path(hint_kernels.__file__).read_text(encoding="utf-8").splitlines()
    found = [lines[a.site.line - 1][a.site.column - 1 :].split("(")[0] for a in accesses(program)]
    assert found == ["tl.load", "tl.load", "tl.store"]
    assert len({(a.site.line, a.site.column) for a in accesses(program)}) == 3
