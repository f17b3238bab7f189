"""Small Pallas kernels, each with waits that can be left out: what `record.py` runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32 = jnp.float32
ANY = pl.BlockSpec(memory_space=pl.ANY)
Case = tuple[Callable[..., Any], tuple[Any, ...]]
DMA = pltpu.SemaphoreType.DMA


def _x(rows: int = 16, columns: int = 128, seed: int = 0) -> Any:
    return jnp.arange(rows * columns, dtype=F32).reshape(rows, columns) + seed


def _call(
    body: Callable[..., None], scratch: list[Any], *, inputs: int, rows: int = 16, params: Any
) -> Callable[..., Any]:
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((rows, 128), F32),
        in_specs=[ANY] * inputs,
        out_specs=ANY,
        scratch_shapes=scratch,
        interpret=params,
    )


def load_compute_store(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, b, s):
        load = pltpu.make_async_copy(x, a, s.at[0])
        load.start()
        if "load" in keep:
            load.wait()
        b[...] = a[...] + 1.0
        store = pltpu.make_async_copy(b, o, s.at[1])
        store.start()
        if "store" in keep:
            store.wait()

    return _call(body, [pltpu.VMEM((16, 128), F32)] * 2 + [DMA((2,))], inputs=1, params=params), (_x(),)


def two_loads_one_buffer(keep: frozenset[str], params: Any) -> Case:
    def body(x, y, o, a, s):
        first = pltpu.make_async_copy(x, a, s.at[0])
        second = pltpu.make_async_copy(y, a, s.at[1])
        first.start()
        if "between" in keep:
            first.wait()
        second.start()
        if "between" not in keep:
            first.wait()
        second.wait()
        pltpu.sync_copy(a, o)

    return _call(body, [pltpu.VMEM((16, 128), F32), DMA((2,))], inputs=2, params=params), (_x(), _x(seed=7))


def double_buffer(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, b, s, t):
        def load(i):
            return pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], a.at[i % 2], s.at[i % 2])

        def store(i):
            return pltpu.make_async_copy(b.at[i % 2], o.at[pl.ds(i * 8, 8)], t.at[i % 2])

        load(0).start()
        for i in range(4):
            if i + 1 < 4:
                load(i + 1).start()
            if "load" in keep:
                load(i).wait()
            if i >= 2 and "store" in keep:
                store(i - 2).wait()
            b[i % 2] = a[i % 2] * 2.0
            store(i).start()
        for i in (2, 3):
            store(i).wait()

    scratch = [pltpu.VMEM((2, 8, 128), F32)] * 2 + [DMA((2,)), DMA((2,))]
    return _call(body, scratch, inputs=1, rows=32, params=params), (_x(32),)


def overwrite_source(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, s):
        pltpu.sync_copy(x, a)
        store = pltpu.make_async_copy(a, o, s)
        store.start()
        if "store" in keep:
            store.wait()
        a[...] = jnp.zeros((16, 128), F32)
        if "store" not in keep:
            store.wait()

    return _call(body, [pltpu.VMEM((16, 128), F32), DMA], inputs=1, params=params), (_x(),)


def disjoint_halves(keep: frozenset[str], params: Any) -> Case:
    def body(x, y, o, a, s):
        first = pltpu.make_async_copy(x.at[pl.ds(0, 8)], a.at[pl.ds(0, 8)], s.at[0])
        second = pltpu.make_async_copy(y.at[pl.ds(8, 8)], a.at[pl.ds(8, 8)], s.at[1])
        first.start()
        second.start()
        first.wait()
        if "second" in keep:
            second.wait()
        pltpu.sync_copy(a, o)

    return _call(body, [pltpu.VMEM((16, 128), F32), DMA((2,))], inputs=2, params=params), (_x(), _x(seed=5))


def overlapping_slices(keep: frozenset[str], params: Any) -> Case:
    def body(x, y, o, a, s):
        first = pltpu.make_async_copy(x.at[pl.ds(0, 8)], a.at[pl.ds(0, 8)], s.at[0])
        second = pltpu.make_async_copy(y.at[pl.ds(0, 8)], a.at[pl.ds(6, 8)], s.at[1])
        first.start()
        if "between" in keep:
            first.wait()
        second.start()
        if "between" not in keep:
            first.wait()
        second.wait()
        pltpu.sync_copy(a, o)

    return _call(body, [pltpu.VMEM((16, 128), F32), DMA((2,))], inputs=2, params=params), (_x(), _x(seed=5))


def shared_semaphore(keep: frozenset[str], params: Any) -> Case:
    def body(x, y, o, a, b, s):
        first = pltpu.make_async_copy(x, a, s)
        second = pltpu.make_async_copy(y, b, s)
        first.start()
        second.start()
        first.wait()
        if "second" in keep:
            second.wait()
        pltpu.sync_copy(a, o)
        if "second" not in keep:
            second.wait()

    return _call(body, [pltpu.VMEM((16, 128), F32)] * 2 + [DMA], inputs=2, params=params), (_x(), _x(seed=3))


def chained_copies(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, b, s):
        first = pltpu.make_async_copy(x, a, s.at[0])
        second = pltpu.make_async_copy(a, b, s.at[1])
        first.start()
        if "first" in keep:
            first.wait()
        second.start()
        if "second" in keep:
            second.wait()
        pltpu.sync_copy(b, o)
        if "first" not in keep:
            first.wait()
        if "second" not in keep:
            second.wait()

    return _call(body, [pltpu.VMEM((16, 128), F32)] * 2 + [DMA((2,))], inputs=1, params=params), (_x(),)


def column_blocks(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, s):
        left = pltpu.make_async_copy(x.at[:, pl.ds(0, 128)], a.at[:, pl.ds(0, 128)], s.at[0])
        right = pltpu.make_async_copy(x.at[:, pl.ds(128, 128)], a.at[:, pl.ds(128, 128)], s.at[1])
        left.start()
        right.start()
        if "left" in keep:
            left.wait()
        first = a[:, 0:128]
        if "right" in keep:
            right.wait()
        a[:, 128:256] = first
        pltpu.sync_copy(a.at[:, pl.ds(128, 128)], o)

    return _call(body, [pltpu.VMEM((16, 256), F32), DMA((2,))], inputs=1, params=params), (_x(16, 256),)


def shared_source(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, b, s):
        first = pltpu.make_async_copy(x, a, s.at[0])
        second = pltpu.make_async_copy(x, b, s.at[1])
        first.start()
        second.start()
        if "first" in keep:
            first.wait()
        if "second" in keep:
            second.wait()
        a[...] += b[...]
        pltpu.sync_copy(a, o)

    return _call(body, [pltpu.VMEM((16, 128), F32)] * 2 + [DMA((2,))], inputs=1, params=params), (_x(),)


def gather_rows(keep: frozenset[str], params: Any) -> Case:
    rows = (3, 0, 7, 5)

    def body(x, o, a, s):
        copies = [pltpu.make_async_copy(x.at[pl.ds(row, 1)], a.at[pl.ds(at, 1)], s) for at, row in enumerate(rows)]
        for copy in copies:
            copy.start()
        for position, copy in enumerate(copies):
            if position < 3 or "last" in keep:
                copy.wait()
        a[4:8] = a[0:4]
        pltpu.sync_copy(a, o)

    return _call(body, [pltpu.VMEM((8, 128), F32), DMA], inputs=1, rows=8, params=params), (_x(8),)


def accumulate(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, total, s):
        total[...] = jnp.zeros((8, 128), F32)
        for i in range(3):
            load = pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], a, s)
            load.start()
            if f"load{i}" in keep:
                load.wait()
            total[...] += a[...]
            if f"load{i}" not in keep:
                load.wait()
        pltpu.sync_copy(total, o)

    return _call(body, [pltpu.VMEM((8, 128), F32)] * 2 + [DMA], inputs=1, rows=8, params=params), (_x(24),)


def in_place(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, s):
        load = pltpu.make_async_copy(x, a, s.at[0])
        load.start()
        load.wait()
        spread = pltpu.make_async_copy(a.at[pl.ds(0, 8)], a.at[pl.ds(8, 8)], s.at[1])
        spread.start()
        if "spread" in keep:
            spread.wait()
        a[0:8] = a[0:8] * 3.0
        if "spread" not in keep:
            spread.wait()
        pltpu.sync_copy(a, o)

    return _call(body, [pltpu.VMEM((16, 128), F32), DMA((2,))], inputs=1, params=params), (_x(),)


def swapped_semaphores(keep: frozenset[str], params: Any) -> Case:
    def body(x, y, o, a, b, s):
        first = pltpu.make_async_copy(x, a, s.at[0])
        second = pltpu.make_async_copy(y, b, s.at[1])
        first.start()
        second.start()
        (first if "right" in keep else second).wait()
        b[...] = a[...] if "right" in keep else a[...] + 0.0
        (second if "right" in keep else first).wait()
        pltpu.sync_copy(a, o)

    return _call(body, [pltpu.VMEM((16, 128), F32)] * 2 + [DMA((2,))], inputs=2, params=params), (_x(), _x(seed=3))


def read_only_sharing(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, b, s):
        pltpu.sync_copy(x, a)
        first = pltpu.make_async_copy(a, o, s)
        first.start()
        b[...] = a[...] * 2.0
        if "out" in keep:
            first.wait()
        a[0:1] = b[0:1]
        if "out" not in keep:
            first.wait()

    return _call(body, [pltpu.VMEM((16, 128), F32)] * 2 + [DMA], inputs=1, params=params), (_x(),)


def grid_pipeline(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, s):
        step = pl.program_id(0)
        load = pltpu.make_async_copy(x.at[pl.ds(step * 8, 8)], a, s)
        load.start()
        if "load" in keep:
            load.wait()
        o[...] = a[...] + 1.0
        if "load" not in keep:
            load.wait()

    call = pl.pallas_call(
        body,
        grid=(3,),
        out_shape=jax.ShapeDtypeStruct((24, 128), F32),
        in_specs=[ANY],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        scratch_shapes=[pltpu.VMEM((8, 128), F32), DMA],
        interpret=params,
    )
    return call, (_x(24),)


def loop_of_copies(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, s):
        def step(i, carry):
            load = pltpu.make_async_copy(x.at[pl.ds(i * 8, 8)], a, s.at[0])
            load.start()
            load.wait()
            store = pltpu.make_async_copy(a, o.at[pl.ds(i * 8, 8)], s.at[1])
            store.start()
            if "store" in keep:
                store.wait()
            return carry

        lax.fori_loop(0, 3, step, 0)

    return _call(body, [pltpu.VMEM((8, 128), F32), DMA((2,))], inputs=1, rows=24, params=params), (_x(24),)


def send_and_receive(keep: frozenset[str], params: Any) -> Case:
    def body(x, o, a, b, s):
        pltpu.sync_copy(x, a)
        copy = pltpu.make_async_remote_copy(a, b, s.at[0], s.at[1], device_id=0, device_id_type=pl.DeviceIdType.LOGICAL)
        copy.start()
        if "sent" in keep:
            copy.wait_send()
        a[...] = jnp.zeros((16, 128), F32)
        if "received" in keep:
            copy.wait_recv()
        pltpu.sync_copy(b, o)
        if "sent" not in keep:
            copy.wait_send()
        if "received" not in keep:
            copy.wait_recv()

    return _call(body, [pltpu.VMEM((16, 128), F32)] * 2 + [DMA((2,))], inputs=1, params=params), (_x(),)


def _on_two_cores(body: Callable[..., None], scratch: tuple[Any, ...], params: Any) -> Case:
    """`body(core, x, y, *scratch)` on both cores of a device; `x` and `y` lie in memory that they share."""
    both = dataclasses.replace(params, num_cores_or_threads=2)

    def call(x: Any) -> Any:
        def inner(refs: Any) -> None:
            @pl.core_map(pltpu.create_tensorcore_mesh("core", num_cores=2), interpret=both)
            def _() -> None:
                core = lax.axis_index("core")
                pl.run_scoped(lambda *allocated: body(core, *refs, *allocated), *scratch)

        return pl.run_state(inner)((x, jnp.zeros_like(x)))[1]

    return jax.jit(call), (_x(),)


def hand_over(keep: frozenset[str], params: Any) -> Case:
    def body(core, x, y, s, a):
        @pl.when(core == 0)
        def _():
            pltpu.sync_copy(x, y)
            pl.semaphore_signal(s, 1, core_index=1)

        @pl.when(core == 1)
        def _():
            if "ready" in keep:
                pl.semaphore_wait(s, 1)
            pltpu.sync_copy(y, a)
            if "ready" not in keep:
                pl.semaphore_wait(s, 1)

    return _on_two_cores(body, (pltpu.SemaphoreType.REGULAR, pltpu.VMEM((16, 128), F32)), params)


def there_and_back(keep: frozenset[str], params: Any) -> Case:
    def body(core, x, y, s, a):
        upper, lower = y.at[pl.ds(0, 8)], y.at[pl.ds(8, 8)]

        @pl.when(core == 0)
        def _():
            pltpu.sync_copy(x.at[pl.ds(0, 8)], upper)
            pl.semaphore_signal(s, 1, core_index=1)
            if "back" in keep:
                pl.semaphore_wait(s, 1)
            pltpu.sync_copy(lower, a)
            if "back" not in keep:
                pl.semaphore_wait(s, 1)

        @pl.when(core == 1)
        def _():
            if "there" in keep:
                pl.semaphore_wait(s, 1)
            pltpu.sync_copy(upper, a)
            pltpu.sync_copy(a, lower)
            if "there" not in keep:
                pl.semaphore_wait(s, 1)
            pl.semaphore_signal(s, 1, core_index=0)

    return _on_two_cores(body, (pltpu.SemaphoreType.REGULAR, pltpu.VMEM((8, 128), F32)), params)


KERNELS: dict[str, tuple[Callable[[frozenset[str], Any], Case], tuple[frozenset[str], ...]]] = {
    factory.__name__: (factory, tuple(frozenset(one.split()) for one in subsets))
    for factory, subsets in [
        (load_compute_store, ("load store", "store", "load", "")),
        (two_loads_one_buffer, ("between", "")),
        (double_buffer, ("load store", "load", "store")),
        (overwrite_source, ("store", "")),
        (disjoint_halves, ("second", "")),
        (overlapping_slices, ("between", "")),
        (shared_semaphore, ("second", "")),
        (chained_copies, ("first second", "second", "first")),
        (column_blocks, ("left right", "left", "right")),
        (shared_source, ("first second", "first", "second")),
        (gather_rows, ("last", "")),
        (accumulate, ("load0 load1 load2", "load0 load2", "load1 load2")),
        (in_place, ("spread", "")),
        (swapped_semaphores, ("right", "")),
        (read_only_sharing, ("out", "")),
        (grid_pipeline, ("load", "")),
        (loop_of_copies, ("store", "")),
        (send_and_receive, ("sent received", "sent", "received")),
        (hand_over, ("ready", "")),
        (there_and_back, ("there back", "there", "back")),
    ]
}
