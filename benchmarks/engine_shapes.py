"""Engine programs to measure on: random traffic between tiles, and matrix multiplications in pipelines."""

from __future__ import annotations

import random
from collections.abc import Callable

from racefree.access import Dim, Pattern
from racefree.engines.builder import ProgramBuilder
from racefree.engines.program import AccessFlag, EngineProgram, MemoryKind, Timing

TILE_BYTES = 512
READ, WRITE = AccessFlag.NONE, AccessFlag.WRITE
SEMAPHORES_PER_QUEUE = 16


class Synchroniser:
    """Emits instructions with the dependencies and the semaphore waits that their tiles need."""

    def __init__(self, name: str, engines: int) -> None:
        self.builder = ProgramBuilder(name)
        self.engines = [self.builder.engine(f"E{e}") for e in range(engines)]
        self.queues = [self.builder.queue(f"q{e}") for e in range(engines)]
        self.done = [self.builder.semaphore(f"done{e}") for e in range(engines)]
        self.rotated = [
            [self.builder.semaphore(f"q{e}.{s}") for s in range(SEMAPHORES_PER_QUEUE)] for e in range(engines)
        ]
        self.counts: dict[int, int] = {}
        self.issued = [0] * engines
        self.signal: list[tuple[int, int, int]] = []
        self.writer: dict[int, int] = {}
        self.readers: dict[int, list[int]] = {}
        self.known = [dict[int, int]() for _ in range(engines)]

    def emit(
        self,
        opcode: str,
        engine: int,
        reads: list[tuple[int, int]],
        writes: list[tuple[int, int]],
        *,
        dma: bool = False,
    ) -> None:
        """An instruction that touches tiles (footprint, buffer); a tile is a footprint no other footprint meets."""
        builder = self.builder
        needs = {self.writer[t] for t, _ in reads if t in self.writer}
        for tile, _ in writes:
            needs.update(self.readers.get(tile, ()))
            if tile in self.writer:
                needs.add(self.writer[tile])
        step = builder.instruction(f"I{len(builder)}", opcode, engine, queue=self.queues[engine] if dma else -1)
        latest: dict[int, tuple[int, int]] = {}
        for source in needs:
            semaphore, value, issuer = self.signal[source]
            if issuer != engine or semaphore not in self.done:
                builder.depends(step, source)
                if value > latest.get(semaphore, (0, 0))[0]:
                    latest[semaphore] = (value, source)
        for semaphore, (value, source) in sorted(latest.items()):
            if self.known[engine].get(semaphore, 0) < value:
                self.known[engine][semaphore] = value
                builder.wait(step, semaphore, value, producer=source)
        if dma:
            # A semaphore is used again only once its last transfer is known to be done: counts then tell transfers apart.
            semaphore = self.rotated[engine][self.issued[engine] % SEMAPHORES_PER_QUEUE]
            self.issued[engine] += 1
            last = self.counts.get(semaphore, 0)
            if self.known[engine].get(semaphore, 0) < last:
                self.known[engine][semaphore] = last
                builder.wait(step, semaphore, last)
        else:
            semaphore = self.done[engine]
        amount = 16 if dma else 1
        self.counts[semaphore] = self.counts.get(semaphore, 0) + amount
        if dma:
            builder.update(step, semaphore, amount - 1, timing=Timing.RUNNING)
        builder.update(step, semaphore, 1)
        self.signal.append((semaphore, self.counts[semaphore], engine))
        for tile, buffer in reads:
            builder.access(step, tile, buffer, READ)
            self.readers.setdefault(tile, []).append(step)
        for tile, buffer in writes:
            builder.access(step, tile, buffer, WRITE)
            self.writer[tile] = step
            self.readers[tile] = []


def synthetic(count: int, engines: int, *, left_out: float = 1e-4, seed: int = 1) -> EngineProgram:
    """Random engines reading one tile and writing another of a pool, one in eight asynchronous; of the instructions, a share
    `left_out` forgets a wait."""
    rng = random.Random(seed)
    sync = Synchroniser(f"synthetic-{count}-{engines}", engines)
    tiles = _tiles(sync.builder, max(64, count // 64))
    for _ in range(count):
        a, b = rng.choice(tiles), rng.choice(tiles)
        if rng.random() < left_out:
            sync.writer.pop(a[0], None)
        sync.emit("Op", rng.randrange(engines), [a], [b], dma=rng.random() < 0.125)
    return sync.builder.build()


def matmul(count: int, engines: int) -> EngineProgram:
    """Pipelines of load, load, multiply, copy, store over double-buffered tiles; one pipeline for each five engines."""
    sync = Synchroniser(f"matmul-{count}-{engines}", engines)
    pipelines = max(1, engines // 5)
    dram = sync.builder.space(MemoryKind.DRAM, "dram")
    tensor = sync.builder.buffer("x", dram, initialised=True)
    tiles = _tiles(sync.builder, pipelines * 16)
    psum = sync.builder.space(MemoryKind.PSUM, "psum")
    banks = [
        (
            sync.builder.footprint(psum, Pattern(2048 * b, 2048), Pattern(0, 1, (Dim(1, 128),))),
            sync.builder.buffer(f"p{b}", psum),
        )
        for b in range(2 * pipelines)
    ]
    turn = 0
    while len(sync.builder) < count:
        pipe, slot = turn % pipelines, turn // pipelines % 2
        first = 5 * pipe % engines
        load_a, load_b, pe, copy, store = ((first + e) % engines for e in range(5))
        a, b, c = (tiles[16 * pipe + 3 * slot + t] for t in range(3))
        bank = banks[2 * pipe + slot]
        source = turn % 4096
        x = sync.builder.footprint(dram, Pattern(source * 65536, TILE_BYTES, (Dim(TILE_BYTES, 128),)))
        y = sync.builder.footprint(dram, Pattern((8192 + turn) * 65536, TILE_BYTES, (Dim(TILE_BYTES, 128),)))
        sync.emit("DMACopy", load_a, [(x, tensor)], [a], dma=True)
        sync.emit("DMACopy", load_b, [(x, tensor)], [b], dma=True)
        for _ in range(4):
            sync.emit("Matmult", pe, [a, b], [bank])
        sync.emit("TensorCopy", copy, [bank], [c])
        sync.emit("DMACopy", store, [c], [(y, tensor)], dma=True)
        turn += 1
    return sync.builder.build()


def _tiles(builder: ProgramBuilder, count: int) -> list[tuple[int, int]]:
    sbuf = builder.space(MemoryKind.SBUF, "sbuf")
    rows = Pattern(0, 1, (Dim(1, 128),))
    found = []
    for tile in range(count):
        bytes_in_row = Pattern(TILE_BYTES * (tile // 2) * 2 + 4 * (tile % 2), 4, (Dim(8, TILE_BYTES // 4),))
        found.append((builder.footprint(sbuf, bytes_in_row, rows), builder.buffer(f"t{tile}", sbuf)))
    return found


SHAPES: dict[str, Callable[[int, int], EngineProgram]] = {"synthetic": synthetic, "matmul": matmul}
