"""Small questions load nothing heavy."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from racefree.access import Dim, Pattern
from racefree.geometry import PatternArray, overlaps, overlaps_batch, self_overlap_witness
a = Pattern(0, 4, (Dim(4096, 8), Dim(8, 16)))
assert overlaps(a, Pattern(4, 4, a.dims)) is False
many = PatternArray.of([a] * 100)
assert overlaps_batch(many, many).all()
print(sorted({"numba", "islpy", "z3", "torch", "triton", "rich"} & set(sys.modules)))
"""


def test_no_heavy_module_is_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
