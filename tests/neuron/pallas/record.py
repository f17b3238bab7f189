"""Runs small Pallas kernels in JAX's interpret mode and writes what happened: `python tests/neuron/pallas/record.py`.

Needs jax 0.10.2, which nothing else here does; the tests read the file this writes (`events.json`). Every kernel runs
with each subset of its waits that the table names. How often the interpreter's own detector reports a race is counted
twice: at its default of two clock slots, and with enough slots that two transfers hardly ever share one. Which slot a
transfer gets is random, so each setting runs several times.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax._src.pallas.mosaic.interpret import interpret_pallas_call as interpreter
from jax._src.pallas.mosaic.interpret import utils as interpreter_utils
from jax.experimental.pallas import tpu as pltpu
from racing_kernels import KERNELS

RUNS = 8
MANY_SLOTS = 97

_log: list[dict[str, Any]] = []
_lock = threading.Lock()


def _note(**event: Any) -> None:
    with _lock:
        _log.append(event)


def _range(transforms: Any, shape: tuple[int, ...]) -> list[list[int]]:
    """Per dimension [start, stop, step]."""
    given = list(interpreter_utils.to_range(transforms))
    result = []
    for size, part in zip(shape, given + [slice(None)] * (len(shape) - len(given)), strict=True):
        if isinstance(part, int):
            result.append([part, part + 1, 1])
        else:
            start = part.start or 0
            result.append([int(start), int(size if part.stop is None else part.stop), int(part.step or 1)])
    return result


def _key(memory_space: Any, buffer: Any, device: Any, core: Any) -> list[Any]:
    space = interpreter.TPU_MEMORY_SPACE_NAMES[int(memory_space)]
    return [space, int(buffer), int(device), interpreter._local_core_id_or_zero_if_hbm(int(core), space)]


def _shape_of(key: list[Any]) -> tuple[int, ...]:
    return tuple(interpreter._get_shared_memory().mem[tuple(key)].shape)


def _region(memory_space: Any, buffer: Any, device: Any, core: Any, transforms: Any) -> dict[str, Any]:
    key = _key(memory_space, buffer, device, core)
    memory = interpreter._get_shared_memory().mem[tuple(key)]
    return {
        "buffer": "/".join(str(part) for part in key),
        "shape": list(memory.shape),
        "itemsize": int(memory.dtype.itemsize),
        "range": _range(jax.tree.map(int, transforms), tuple(memory.shape)),
    }


def _core(device: Any, core: Any) -> int:
    return interpreter._get_shared_memory().get_global_core_id(int(device), int(core))


def _get(
    inner: Callable[..., Any],
    token: Any,
    device: Any,
    core: Any,
    space: Any,
    buffer: Any,
    transforms: Any,
    *rest: Any,
    **more: Any,
) -> Any:
    _note(event="read", core=_core(device, core), at=_region(space, buffer, device, core, transforms))
    return inner(token, device, core, space, buffer, transforms, *rest, **more)


def _store(
    inner: Callable[..., Any],
    token: Any,
    device: Any,
    core: Any,
    space: Any,
    buffer: Any,
    transforms: Any,
    *rest: Any,
    **more: Any,
) -> Any:
    _note(event="write", core=_core(device, core), at=_region(space, buffer, device, core, transforms))
    return inner(token, device, core, space, buffer, transforms, *rest, **more)


def _dma_start(inner: Callable[..., Any], token: Any, device: Any, core: Any, *rest: Any, **more: Any) -> Any:
    (src_space, src, src_at, dst_space, dst, dst_at, dst_sem, src_sem, dst_device) = rest
    target = device if dst_device is None else dst_device
    source = _region(src_space, src, device, core, src_at)
    _note(
        event="dma",
        core=_core(device, core),
        source=source,
        target=_region(dst_space, dst, target, core, dst_at),
        size=source["itemsize"] * int(np.prod([len(range(*part)) for part in source["range"]])),
        source_semaphore=None if src_sem is None else f"{int(src_sem)}@{_core(device, core)}",
        target_semaphore=f"{int(dst_sem)}@{_core(target, core)}",
    )
    return inner(token, device, core, *rest, **more)


def _wait(
    inner: Callable[..., Any], token: Any, device: Any, core: Any, semaphore: Any, value: Any, **more: Any
) -> Any:
    here = _core(device, core)
    _note(event="wait", core=here, semaphore=f"{int(semaphore)}@{here}", value=int(value))
    return inner(token, device, core, semaphore, value, **more)


def _signal(
    inner: Callable[..., Any],
    token: Any,
    device: Any,
    core: Any,
    semaphore: Any,
    inc: Any,
    to_device: Any,
    to_core: Any,
    **more: Any,
) -> Any:
    target = _core(device if to_device is None else to_device, 0 if to_core is None else to_core)
    _note(event="signal", core=_core(device, core), semaphore=f"{int(semaphore)}@{target}", value=int(inc))
    return inner(token, device, core, semaphore, inc, to_device, to_core, **more)


_HOOKS = {
    "get": _get,
    "store": _store,
    "swap": _store,
    "dma_start": _dma_start,
    "dma_wait": _wait,
    "semaphore_wait": _wait,
    "semaphore_signal": _signal,
}


def _barrier_for_device(inner: Callable[..., Any], token: Any, device: Any) -> Any:
    _note(event="barrier", core=-1)
    return inner(token, device)


@contextlib.contextmanager
def _hooked() -> Iterator[None]:
    saved = {name: getattr(interpreter, name) for name in [*_HOOKS, "_update_clocks_for_device_barrier"]}
    for name, hook in {**_HOOKS, "_update_clocks_for_device_barrier": _barrier_for_device}.items():
        setattr(interpreter, name, functools.wraps(saved[name])(functools.partial(hook, saved[name])))
    try:
        yield
    finally:
        for name, function in saved.items():
            setattr(interpreter, name, function)


# ---- kernels: each factory returns (call, arguments) for the set of waits to keep ----


def _run(name: str, keep: frozenset[str], slots: int | None) -> tuple[bool, list[dict[str, Any]]]:
    factory, _ = KERNELS[name]
    params = pltpu.InterpretParams(detect_races=True, dma_execution_mode="eager", vector_clock_size=slots)
    call, arguments = factory(keep, params)
    _log.clear()
    with contextlib.redirect_stdout(io.StringIO()), _hooked():
        jax.block_until_ready(call(*arguments))
    found = bool(interpreter.races and interpreter.races.races_found)
    pltpu.reset_tpu_interpret_mode_state()
    return found, list(_log)


def main() -> None:
    cases = []
    for name, (_, subsets) in KERNELS.items():
        for keep in subsets:
            default = [_run(name, keep, None)[0] for _ in range(RUNS)]
            many = [_run(name, keep, MANY_SLOTS) for _ in range(RUNS)]
            case = {
                "kernel": name,
                "waits": sorted(keep),
                "runs": RUNS,
                "reported_at_default": sum(default),
                "reported_with_many_slots": sum(found for found, _ in many),
                "events": many[0][1],
            }
            sys.stderr.write(
                f"{name} {sorted(keep)}: {case['reported_at_default']} {case['reported_with_many_slots']}\n"
            )
            cases.append(case)
    target = Path(__file__).with_name("events.json")
    target.write_text(json.dumps({"jax": jax.__version__, "cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
