"""Runs proved launches in Triton's interpreter, so that later launches find in memory what these compute."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from racefree.analysis import Decided
from racefree.eager.definedness import Definedness, Undefined
from racefree.eager.memory import Memory
from racefree.eager.trace import Pid
from racefree.errors import Refused
from racefree.graph.launch import LaunchFacts
from racefree.verdict import Status

if TYPE_CHECKING:
    from racefree.triton.collector import Capture
    from racefree.triton.interpreter import Running
    from racefree.triton.launches import CapturedConfig, CapturedLaunch

SECONDS = 10.0
MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Computer:
    """Runs launches whose outcome is certain: proved race-free, and the same in whatever order their instances run.

    A run takes at most about `seconds`. It happens in a forked process; what it leaves in the tensors it may write is copied
    back. Memory whose contents are not known stays so until every byte of it was computed.
    """

    seconds: float = SECONDS

    def compute(self, decided: Decided, captured: CapturedLaunch, capture: Capture) -> str:
        """Runs the launch that is being delivered; why it did not, "" if its tensors hold now what it leaves there."""
        ready = _ready(decided, captured, capture)
        return ready if isinstance(ready, str) else self._run(ready, capture)

    def _run(self, ready: _Ready, capture: Capture) -> str:
        from racefree.triton.forked import Failed, in_fork
        from racefree.triton.interpreter import Interpreter, Unrunnable

        stale = capture.stale()
        memory = list(ready.storages.items())
        unknown = [(address, nbytes) for address, nbytes in ready.storages.items() if address in stale]

        def work() -> tuple[dict[int, bytes], frozenset[int]] | str:
            watcher = Definedness(Memory(memory), unknown)
            try:
                interpreter = Interpreter(ready.running, memory)
                interpreter.compute(_programs(ready.facts.grid), watcher, seconds=self.seconds)
            except (Undefined, Unrunnable) as error:
                return str(error)
            left = {address: ctypes.string_at(address, ready.storages[address]) for address in ready.written}
            return left, watcher.known

        found = in_fork(work, seconds=2 * self.seconds)
        if isinstance(found, Failed):
            return found.reason
        if isinstance(found, str):
            return found
        contents, known = found
        capture.put(contents, known & contents.keys())
        return ""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A launch that can be run: `storages` are the bytes at each address, `written` those that may be written."""

    running: Running
    facts: LaunchFacts
    storages: dict[int, int]
    written: frozenset[int]


def _ready(decided: Decided, captured: CapturedLaunch, capture: Capture) -> _Ready | str:
    """The launch as it can be run, or why it cannot."""
    if decided.launch.verdict.status is not Status.OK:
        return "it is not proved race-free"
    if decided.storages_written is None:
        return "it may write anywhere"
    if len(captured.configs) > 1:
        return "it is tuned, and its configs need not leave the same"
    (config,), (running,) = captured.configs, capture.running
    if running is None or config.facts is None:
        return "its arguments are not at hand"
    written = decided.storages_written
    storages = {tensor.storage.address: tensor.storage.nbytes for tensor in config.facts.tensors.values()}
    obstacle = _obstacle(config, sum(storages[a] for a in written)) or capture.unwritable(written)
    return obstacle or _Ready(running, config.facts, storages, written)


def _obstacle(config: CapturedConfig, written_bytes: int) -> str:
    from racefree.graph.leftout import looks_at_left_out_lanes
    from racefree.graph.outcome import order_matters
    from racefree.ttir.read import read_program

    if written_bytes > MOST_BYTES:
        return f"it may write {written_bytes} bytes, and at most {MOST_BYTES} are copied"
    if config.module is None:
        return "its code is not at hand"
    try:
        program = read_program(config.module)
    except Refused as error:
        return str(error)
    if looks_at_left_out_lanes(program):
        return "it uses lanes that the mask of a load leaves out"
    return order_matters(program)


def _programs(grid: tuple[int, int, int]) -> list[Pid]:
    x, y, z = grid
    return [(i, j, k) for k, j, i in product(range(z), range(y), range(x))]
