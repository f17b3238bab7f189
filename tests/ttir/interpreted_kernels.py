"""Kernels whose accesses are compared between Triton's own interpreter and our reading of the compiled program.

Run as a script under `TRITON_INTERPRET=1` it prints, as JSON, the elements each program instance of each kernel touched.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

SIZE = 4096


@dataclass(frozen=True)
class Launch:
    """One launch; every `*` argument is a tensor of SIZE elements, an integer is itself."""

    kernel: Any
    arguments: dict[str, Any]
    grid: tuple[int, ...] = (3,)


def counting(dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return (torch.arange(SIZE) * 7 % 23).to(dtype)


@triton.jit
def signs(out, i, j):
    at = 1000 + (tl.program_id(0) - 1) * i
    tl.store(out + at // j + 2000, 1)
    tl.store(out + at % j + 2100, 1)
    tl.store(out + (-at) // j + 2200, 1)
    tl.store(out + (-at) % j + 2300, 1)
    tl.store(out + ((-at) >> 3) + 2400, 1)


@triton.jit
def unsigned(out, table, n):
    lane = tl.arange(0, 16)
    big = (lane - 8).to(tl.uint32)
    tl.store(out + big // 0x10000000, 1)
    tl.store(out + 100 + (big >> 28), 1)
    tl.store(out + 200 + tl.where(big > 5, lane, lane + 20), 1)
    tl.store(out + 300 + tl.umulhi(big, tl.full((16,), 64, tl.uint32)), 1)
    tl.store(out + 400 + tl.load(table + lane).to(tl.int32) % n, 1)


@triton.jit
def wraps(out, n):
    lane = tl.arange(0, 16)
    product = (lane + 65530) * n
    tl.store(out + (product & 1023), 1)
    tl.store(out + 1024 + ((product.to(tl.int64) >> 20) & 1023), 1)
    small = (lane * 30).to(tl.int8)
    tl.store(out + 2200 + small, 1)
    tl.store(out + 2400 + small.to(tl.uint8), 1)


@triton.jit
def tiles(out, n):
    row = tl.arange(0, 8)[:, None]
    column = tl.arange(0, 16)[None, :]
    flat = row * 16 + column
    tl.store(out + tl.trans(flat), 1, mask=tl.trans((row < n) & (column > 3)))
    tl.store(out + 200 + tl.reshape(flat, (4, 32)), 1, mask=tl.reshape(flat % 3 == 0, (4, 32)))
    left, right = tl.split(tl.reshape(flat, (8, 8, 2)))
    tl.store(out + 400 + left * 2 + right, 1)
    both = tl.join(tl.arange(0, 8), tl.arange(0, 8) + 50)
    tl.store(out + 1000 + both, 1)
    tl.store(out + 1200 + tl.permute(both, (1, 0)), 1)


@triton.jit
def folds(out, table, n):
    lane = tl.arange(0, 32)
    values = tl.load(table + lane)
    tl.store(out + tl.max(values, 0), 1)
    tl.store(out + 100 + tl.min(values, 0) + tl.sum((values < n).to(tl.int32), 0), 1)
    tl.store(out + 200 + tl.cumsum(values, 0), 1)
    tl.store(out + 1000 + tl.cumsum(values, 0, reverse=True), 1)
    tl.store(out + 2000 + tl.xor_sum(values, 0), 1)
    tl.store(out + 2100 + tl.gather(values, 31 - lane, 0), 1)


@triton.jit
def _inner(out, at, n):
    if at > n:
        return at - n
    tl.store(out + at, 1)
    return at + 1


@triton.jit(noinline=True)
def _apart(out, at, n):
    if at > n:
        tl.store(out + at, 1)
        return at - n
    if at == n:
        return 7
    return at + 2


@triton.jit
def flow(out, table, n):
    at = tl.program_id(0) * 5
    for i in range(2, n, 3):
        at = _inner(out, at + i, n)
        if at % 2 == 0:
            at += tl.load(table + i)
        else:
            at = _apart(out, at, n)
    while at > 3:
        tl.store(out + 500 + at, 1)
        at = at // 2
    for i in range(n, 0, -4):
        tl.store(out + 700 + i, 1)
    if at == 1:
        return
    tl.store(out + 900 + at, 1)
    if tl.program_id(0) == 2:
        out += 50
        if n > 3:
            return
    tl.store(out + 1000, 1)


@triton.jit
def pointers(out, other, flags, n):
    lane = tl.arange(0, 16)
    base = out
    step = other
    for i in range(n):
        tl.store(base + i, 1)
        base, step = step + 1, base + 2
    wide = out.to(tl.pointer_type(tl.int64), bitcast=True)
    tl.store(wide + 200 + lane, 1)
    tl.store(flags + lane * 3, lane > 4)
    chosen = out if tl.program_id(0) == 1 else other
    tl.store(chosen + 1000 + lane, 1, mask=lane < n)
    tl.store(tl.where(lane > 7, out + 1200, other + 1300) + lane, 1)


@triton.jit
def atomics(out, real, n):
    lane = tl.arange(0, 16)
    tl.atomic_add(out + lane // 2, 1, mask=lane != n)
    tl.atomic_xchg(out + 100 + tl.program_id(0), 5)
    tl.atomic_cas(out + 200 + n, 0, 1)
    tl.atomic_add(real + lane * 2, 1.0)


@triton.jit
def described(out, n, m):
    tensor = tl.make_tensor_descriptor(out, [n, m], [64, 1], [8, 16])
    i = tl.program_id(0)
    tile = tensor.load([8 * i - 3, 8])
    tensor.store([8 * i - 3, m - 5], tile)
    tensor.store([n - 3, 16 * i - 4], tile)


LAUNCHES = {
    "signs": Launch(signs, {"out": torch.int32, "i": 1007, "j": -13}),
    "unsigned": Launch(unsigned, {"out": torch.int32, "table": torch.uint8, "n": 5}),
    "wraps": Launch(wraps, {"out": torch.int32, "n": 65521}),
    "tiles": Launch(tiles, {"out": torch.int32, "n": 5}),
    "folds": Launch(folds, {"out": torch.int32, "table": torch.int32, "n": 9}),
    "flow": Launch(flow, {"out": torch.int32, "table": torch.int32, "n": 19}, (6,)),
    "pointers": Launch(pointers, {"out": torch.int32, "other": torch.int32, "flags": torch.bool, "n": 5}),
    "atomics": Launch(atomics, {"out": torch.int32, "real": torch.float32, "n": 3}),
    "described": Launch(described, {"out": torch.int32, "n": 19, "m": 45}),
}


def arguments(launch: Launch) -> dict[str, Any]:
    """Fresh tensors and scalars of a launch."""
    return {
        name: counting(value) if isinstance(value, torch.dtype) else value for name, value in launch.arguments.items()
    }


def _record(touched: dict[str, list[Any]], tensors: dict[str, torch.Tensor]) -> None:
    """Makes the interpreter write down what each program instance touches: kind, tensor, byte offset, size."""
    import numpy as np
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    kind_of = type(builder)

    def note(kind: str, pointers: Any, mask: Any) -> None:
        pid = ",".join(str(int(part)) for part in builder.grid_idx)
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        addresses = np.asarray(pointers.data)
        for address in addresses[np.broadcast_to(np.asarray(mask, dtype=bool), addresses.shape)].reshape(-1).tolist():
            where = next(
                (
                    [name, int(address) - tensor.data_ptr()]
                    for name, tensor in tensors.items()
                    if 0 <= int(address) - tensor.data_ptr() < tensor.nbytes
                ),
                ["outside", 0],
            )
            touched.setdefault(pid, []).append([kind, *where, size])

    def wrap(name: str, kind: str, pointers_at: int, mask_at: int | None) -> None:
        original = getattr(kind_of, name)

        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            note(kind, args[pointers_at], True if mask_at is None else args[mask_at].data)
            return original(self, *args, **kwargs)

        setattr(kind_of, name, noted)

    wrap("create_masked_load", "load", 0, 1)
    wrap("create_masked_store", "store", 0, 2)
    wrap("create_atomic_cas", "atomic", 0, None)
    wrap("create_atomic_rmw", "atomic", 1, 3)


def main() -> str:
    assert os.environ.get("TRITON_INTERPRET") == "1"
    touched: dict[str, list[Any]] = {}
    tensors: dict[str, torch.Tensor] = {}
    _record(touched, tensors)
    result: dict[str, dict[str, list[Any]]] = {}
    for name, launch in LAUNCHES.items():
        given = arguments(launch)
        touched.clear()
        tensors.clear()
        tensors.update({key: value for key, value in given.items() if isinstance(value, torch.Tensor)})
        launch.kernel[launch.grid](**given)
        result[name] = dict(touched)
    return json.dumps(result)


if __name__ == "__main__":
    import sys

    sys.stdout.write(main())
