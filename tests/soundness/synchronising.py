"""Random kernels whose programs meet through atomics: usual protocols, each part of them sometimes missing or too weak."""

from __future__ import annotations

import random
from collections.abc import Callable

from kernels import Kernel, Node, TensorSpec

LANES = 32


class Protocol:
    """The choices all protocols share."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def fence(self) -> list[Node]:
        return [Node("tl.debug_barrier()")] if self.chance(0.7) else []

    def order(self, good: str) -> str:
        sem = good if self.chance(0.7) else self.rng.choice(("relaxed", "acquire", "release", "acq_rel"))
        scope = "" if self.chance(0.9) else self.rng.choice((', scope="cta"', ', scope="sys"'))
        return f'sem="{sem}"{scope}'

    def write(self) -> list[Node]:
        if self.chance(0.75):
            return [Node("tl.store(data + lane, lane)")]
        return [Node("tl.store(data, 5)")]

    def read(self) -> list[Node]:
        load = "tl.load(data + lane)" if self.chance(0.75) else "tl.load(data) + lane"
        return [Node(f"v = {load}"), Node(f"tl.store(out + p * {LANES} + lane, v)")]

    def update(self) -> list[Node]:
        if self.chance(0.8):
            return [Node("u = tl.load(data + lane)"), Node("tl.store(data + lane, u + 1)")]
        return [Node("u = tl.load(data)"), *self.fence(), Node("tl.store(data, u + 1)")]

    def publish(self, flag: str) -> Node:
        how = self.rng.choice(("xchg", "xchg", "add", "max"))
        return Node(f"tl.atomic_{how}({flag}, 1, {self.order('release')})")

    def poll(self, flag: str, value: str = "1") -> list[Node]:
        """Wait for the flag, or only look at it."""
        order = self.order("acquire")
        read = self.rng.choice(
            (f"tl.atomic_cas({flag}, {value}, {value}, {order})", f"tl.atomic_add({flag}, 0, {order})")
        )
        return [Node(f"while {read} != {value}:", [Node("pass")])]


def flag(c: Protocol) -> list[Node]:
    """One program publishes, the others wait or look."""
    writer = [*c.write(), *c.fence(), c.publish("sync")]
    if c.chance(0.1):
        writer = [writer[-1], *writer[:-1]]
    if c.chance(0.1):
        writer += c.write()
    if c.chance(0.25):
        looked = Node(f"seen = tl.atomic_add(sync, 0, {c.order('acquire')})")
        reader = [looked, Node("if seen == 1:", [*c.fence(), *c.read()])]
    else:
        reader = [*c.poll("sync"), *c.fence(), *c.read()]
    return [Node("if p == 0:", writer), Node("else:", reader)]


def relay(c: Protocol) -> list[Node]:
    """Program 0 tells program 1, which tells program 2."""
    first = [*c.write(), *c.fence(), c.publish("sync")]
    middle = [*c.poll("sync"), *c.fence(), *(c.update() if c.chance(0.5) else []), *c.fence(), c.publish("sync + 1")]
    last = [*c.poll("sync + 1"), *c.fence(), *c.read()]
    return [Node("if p == 0:", first), Node("elif p == 1:", middle), Node("else:", last)]


def lock(c: Protocol) -> list[Node]:
    """A spin lock."""
    take = Node(f"while tl.atomic_cas(sync, 0, 1, {c.order('acquire')}) != 0:", [Node("pass")])
    free = Node(f"tl.atomic_xchg(sync, 0, {c.order('release')})")
    return [take, *c.fence(), *c.update(), *c.fence(), free]


def ticket(c: Protocol) -> list[Node]:
    """The last to arrive reads what all have written."""
    draw = Node(f"t = tl.atomic_add(sync, 1, {c.order('acq_rel')})")
    last = c.rng.choice(("t == tl.num_programs(0) - 1",) * 3 + ("t == 1", "t >= 1"))
    total = Node(
        f"tl.store(out + lane, tl.load(data + lane) + tl.load(data + {LANES} + lane) + tl.load(data + {2 * LANES} + lane))"
    )
    out = [Node(f"tl.store(data + p * {LANES} + lane, p)"), *c.fence(), draw, Node(f"if {last}:", [*c.fence(), total])]
    if c.chance(0.5):
        reset = c.rng.choice(("tl.store(sync, 0)", f"tl.atomic_xchg(sync, 0, {c.order('relaxed')})"))
        out.append(Node(f"if {last if c.chance(0.8) else 't >= 1'}:", [Node(reset)]))
    return out


def meeting(c: Protocol) -> list[Node]:
    """All wait for all."""
    arrive = Node(f"tl.atomic_add(sync, 1, {c.order('release')})")
    wait = c.poll("sync", c.rng.choice(("3", "3", "3", "2")))
    return [
        Node(f"tl.store(data + p * {LANES} + lane, p)"),
        *c.fence(),
        arrive,
        *wait,
        *c.fence(),
        Node(f"tl.store(out + p * {LANES} + lane, tl.load(data + ((p + 1) % 3) * {LANES} + lane))"),
    ]


def claim(c: Protocol) -> list[Node]:
    """Whoever comes first fills the slot; the others wait until it is full."""
    full = Node(f"tl.atomic_xchg(sync, 2, {c.order('release')})")
    taken = Node(f"old = tl.atomic_cas(sync, 0, 1, {c.order('acq_rel')})")
    owner = [*c.write(), *c.fence(), full]
    others = [*c.poll("sync", "2"), *c.fence(), *c.read()] if c.chance(0.7) else [Node("pass")]
    return [taken, Node("if old == 0:", owner), Node("else:", others)]


def turns(c: Protocol) -> list[Node]:
    """One after the other."""
    wait = Node("if p > 0:", c.poll("sync + p - 1"))
    return [wait, *c.fence(), *c.update(), *c.fence(), c.publish("sync + p")]


PROTOCOLS: tuple[Callable[[Protocol], list[Node]], ...] = (flag, relay, lock, ticket, meeting, claim, turns)


def generate_synchronising(seed: int) -> Kernel:
    """The kernel of a seed: the same text for the same seed, always."""
    rng = random.Random(seed)
    nodes = [Node("p = tl.program_id(0)"), Node(f"lane = tl.arange(0, {LANES})")]
    nodes += rng.choice(PROTOCOLS)(Protocol(rng))
    tensors = {
        "data": TensorSpec("int32", 4 * LANES),
        "sync": TensorSpec("int32", 8, values=(0,) * 8),
        "out": TensorSpec("int32", 4 * LANES),
    }
    return Kernel(seed, nodes, tensors, {}, (3,), rng.choice((1, 4)))
