"""Runs generated kernels in Triton's own interpreter and writes down what each program instance touches.

As a script, under `TRITON_INTERPRET=1`: `python interpreting.py FIRST LAST` prints JSON, one list per seed and program id.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

from generation import generate
from judging import build_arguments, write_module
from kernels import Kernel

Rows = list[tuple[str, str, int, int]]
"""(kind, base tensor, byte offset in its storage, element size)"""


def touched_by_interpreter(kernel: Kernel, function: Any) -> dict[str, Rows]:
    """Per program id, every element touched, in Triton's interpreter."""
    arguments = build_arguments(kernel.tensors, kernel.scalars)
    for name, spec in kernel.tensors.items():
        if spec.base:
            whole = arguments[spec.base]
            arguments[name] = whole[spec.offset_elems :].view(arguments[name].dtype)
        else:
            arguments[name] = _with_margins(arguments[name])
    bases = {n: arguments[n] for n, spec in kernel.tensors.items() if not spec.base}
    found: dict[str, Rows] = {}
    _TARGET.update(bases=bases, found=found)
    function[kernel.grid](**arguments)
    return found


def _with_margins(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with room on both sides: the interpreter really writes where a kernel leaves its tensor."""
    roomy = torch.zeros(tensor.numel() + 2 * MARGIN, dtype=tensor.dtype)
    middle = roomy[MARGIN : MARGIN + tensor.numel()]
    middle.copy_(tensor)
    return middle


MARGIN = 4096
_TARGET: dict[str, Any] = {}


def _note(builder: Any, kind: str, pointers: Any, mask: Any) -> None:
    pid = ",".join(str(int(part)) for part in builder.grid_idx)
    size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
    addresses = np.asarray(pointers.data)
    active = np.broadcast_to(np.asarray(mask, dtype=bool), addresses.shape)
    for address in addresses[active].reshape(-1).tolist():
        rows = _TARGET["found"].setdefault(pid, [])
        for name, tensor in _TARGET["bases"].items():
            if 0 <= int(address) - tensor.data_ptr() < tensor.nbytes:
                rows.append((kind, name, int(address) - tensor.data_ptr(), size))
                break
        else:
            rows.append((kind, "outside", 0, size))


def _record() -> None:
    from triton.runtime import interpreter

    kind_of = type(interpreter.interpreter_builder)

    def wrap(name: str, kind: str, pointers_at: int, mask_at: int | None) -> None:
        original = getattr(kind_of, name)

        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            _note(self, kind, args[pointers_at], True if mask_at is None else args[mask_at].data)
            return original(self, *args, **kwargs)

        setattr(kind_of, name, noted)

    wrap("create_masked_load", "load", 0, 1)
    wrap("create_masked_store", "store", 0, 2)
    wrap("create_atomic_cas", "atomic", 0, None)
    wrap("create_atomic_rmw", "atomic", 1, 3)


def main(first: int, last: int) -> dict[int, dict[str, Rows] | str]:
    _record()
    kernels = [generate(seed) for seed in range(first, last)]
    found: dict[int, dict[str, Rows] | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        module = write_module(Path(folder) / "interpreted.py", kernels)
        for kernel in kernels:
            try:
                found[kernel.seed] = touched_by_interpreter(kernel, getattr(module, kernel.name))
            except Exception as error:
                found[kernel.seed] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
