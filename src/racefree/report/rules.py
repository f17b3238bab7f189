"""The rules a finding can break: what each means, why it matters on hardware, a racy and a fixed kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True, slots=True)
class Rule:
    """`title` fits a report line; `racy` and `fixed` are the smallest kernels that show and mend it."""

    name: str
    title: str
    meaning: str
    hardware: str
    racy: str
    fixed: str


def _rule(name: str, title: str, meaning: str, hardware: str, racy: str, fixed: str) -> Rule:
    return Rule(name, title, *(dedent(text).strip("\n") for text in (meaning, hardware, racy, fixed)))


BETWEEN_WRITES = "RF001"
BETWEEN_READ_WRITE = "RF002"
INSIDE_WRITES = "RF003"
INSIDE_READ_WRITE = "RF004"
ATOMIC_AND_PLAIN = "RF005"
ATOMICS_APART = "RF006"
ENGINE_WRITES = "RF101"
ENGINE_READ_WRITE = "RF102"
CORES_APART = "RF103"

_ALL = (
    _rule(
        BETWEEN_WRITES,
        "write-write between programs",
        """
        Two program instances of one launch store to the same bytes, and nothing orders them.
        Storing the same value twice is still a race.
        """,
        """
        Program instances run in any order and at the same time, so the bytes hold whichever store came last. The order
        changes with the number of multiprocessors, with the load, and from run to run.
        """,
        """
        @triton.jit
        def kernel(out, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) + tl.arange(0, BLOCK)  # blocks overlap
            tl.store(out + offsets, tl.program_id(0))
        """,
        """
        @triton.jit
        def kernel(out, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + offsets, tl.program_id(0))
        """,
    ),
    _rule(
        BETWEEN_READ_WRITE,
        "read-write between programs",
        """
        One program instance loads bytes that another instance of the same launch stores, and nothing orders them.
        """,
        """
        The load may see the old value, the new one, or part of each. There is no barrier across a grid: only the end of
        the launch, or release and acquire through atomics, orders two instances.
        """,
        """
        @triton.jit
        def kernel(x, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            before = tl.load(x + offsets - BLOCK, mask=offsets >= BLOCK)  # the block before
            tl.store(x + offsets, before)
        """,
        """
        @triton.jit
        def kernel(x, out, BLOCK: tl.constexpr):
            offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            before = tl.load(x + offsets - BLOCK, mask=offsets >= BLOCK)
            tl.store(out + offsets, before)
        """,
    ),
    _rule(
        INSIDE_WRITES,
        "write-write inside one program",
        """
        Two lanes, or two statements, of one program instance store to the same bytes, and nothing orders them.
        """,
        """
        The lanes of a tile are spread over the threads of a block, which run at their own pace. Which lane's value stays
        depends on the layout the compiler picked.
        """,
        """
        @triton.jit
        def kernel(out, BLOCK: tl.constexpr):
            lanes = tl.arange(0, BLOCK)
            tl.store(out + lanes // 2, lanes)  # two lanes for each element
        """,
        """
        @triton.jit
        def kernel(out, BLOCK: tl.constexpr):
            lanes = tl.arange(0, BLOCK)
            tl.store(out + lanes // 2, lanes, mask=lanes % 2 == 0)
        """,
    ),
    _rule(
        INSIDE_READ_WRITE,
        "read-write inside one program",
        """
        One program instance loads an element on one lane and stores it on another, with no barrier in between.
        """,
        """
        The two lanes may belong to different threads, and a store of one thread becomes visible to another only through a
        barrier. The compiler adds none on its own between plain accesses of global memory.
        """,
        """
        @triton.jit
        def kernel(x, out, BLOCK: tl.constexpr):
            lanes = tl.arange(0, BLOCK)
            tl.store(x + lanes, lanes)
            tl.store(out + lanes, tl.load(x + (BLOCK - 1 - lanes)))
        """,
        """
        @triton.jit
        def kernel(x, out, BLOCK: tl.constexpr):
            lanes = tl.arange(0, BLOCK)
            tl.store(x + lanes, lanes)
            tl.debug_barrier()
            tl.store(out + lanes, tl.load(x + (BLOCK - 1 - lanes)))
        """,
    ),
    _rule(
        ATOMIC_AND_PLAIN,
        "atomic against plain access",
        """
        One access is atomic and the other is a plain load or store of the same bytes, and nothing orders them.
        """,
        """
        An atomic is indivisible only against other atomics. A plain store can be lost between its two halves, and a plain
        load can be kept in a register or in a cache that the atomic passes by.
        """,
        """
        @triton.jit
        def kernel(total):
            if tl.program_id(0) == 0:
                tl.store(total, 0)
            tl.atomic_add(total, 1)
        """,
        """
        @triton.jit
        def kernel(total):  # the host clears `total` before the launch
            tl.atomic_add(total, 1)
        """,
    ),
    _rule(
        ATOMICS_APART,
        "atomics that do not exclude each other",
        """
        Two atomics meet on a byte, but their scopes do not include each other, or they differ in address or width.
        """,
        """
        An atomic of `cta` scope may be carried out in a cache that other program instances do not share. Atomics of
        different widths are indivisible each for itself, not against one another.
        """,
        """
        @triton.jit
        def kernel(total):
            tl.atomic_add(total, 1, scope="cta")
        """,
        """
        @triton.jit
        def kernel(total):
            tl.atomic_add(total, 1, scope="gpu")
        """,
    ),
    _rule(
        ENGINE_WRITES,
        "write-write between engines",
        """
        Two instructions of an engine program write the same bytes, and no chain of program order and semaphores orders them.
        """,
        """
        Engines run their instruction streams independently; a DMA completes some time after it was issued. Without a
        semaphore that the later one waits for, either write may come last.
        """,
        """
        DMA queue:   write SBUF[0:64]          (raises no semaphore)
        Activation:  write SBUF[32:96]
        """,
        """
        DMA queue:   write SBUF[0:64]          raise S by 1 at completion
        Activation:  wait until S >= 1;        write SBUF[32:96]
        """,
    ),
    _rule(
        ENGINE_READ_WRITE,
        "read-write between engines",
        """
        One instruction of an engine program reads bytes that another writes, and no chain of program order and semaphores
        orders them.
        """,
        """
        The reader may run before, after, or in the middle of the write. Waiting for the issue of a DMA is not enough: the
        wait has to be for its completion.
        """,
        """
        DMA queue:   write SBUF[0:64]          (raises no semaphore)
        Tensor:      read  SBUF[0:64]
        """,
        """
        DMA queue:   write SBUF[0:64]          raise S by 1 at completion
        Tensor:      wait until S >= 1;        read SBUF[0:64]
        """,
    ),
    _rule(
        CORES_APART,
        "conflict between cores",
        """
        Instructions of two cores of one logical core touch the same bytes of shared memory, at least one of them writes,
        and no core barrier separates them.
        """,
        """
        Each core runs its own program; they meet only at core barriers. A semaphore of one core says nothing about the
        other.
        """,
        """
        core 0:  write DRAM[0:64];  core barrier
        core 1:  read DRAM[0:64];   core barrier
        """,
        """
        core 0:  write DRAM[0:64];  core barrier
        core 1:  core barrier;  read DRAM[0:64]
        """,
    ),
)

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _ALL}


def explain(name: str) -> str:
    """The long text on one rule. Raises KeyError for a name that is no rule."""
    rule = RULES[name]
    parts = [
        f"{rule.name}: {rule.title}",
        rule.meaning,
        f"On hardware\n{_indent(rule.hardware)}",
        f"A racy example\n{_indent(rule.racy)}",
        f"The same, fixed\n{_indent(rule.fixed)}",
    ]
    return "\n\n".join(parts) + "\n"


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())
